"""Waits for something to become true, with a bound; how a test waits for an event without sleeping over it."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOOK = 0.02  # seconds between two looks


class TooLateError(AssertionError):
    """What was waited for did not come within its bound."""


def until(look: Callable[[], T], *, within: float, about: str = "", told: Callable[[], object] | None = None) -> T:
    """The first true answer of `look`; TooLateError after `within` seconds, with `about` and what `told` says then."""
    ends_at = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > ends_at:
            more = f": {told()}" if told is not None else ""
            raise TooLateError(f"not within {within:g} s: {about or look}{more}")
        time.sleep(LOOK)


def measured(look: Callable[[], object], *, within: float, about: str = "") -> float:
    """How many seconds it took until `look` answered something true."""
    started = time.monotonic()
    until(look, within=within, about=about)
    return time.monotonic() - started
