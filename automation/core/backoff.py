"""When a failed step is tried again."""

import math
from typing import Protocol

from automation.core.spec import Retry

MAX_ATTEMPTS = 20
MAX_RETRY_AFTER = 7 * 86_400.0


class Chance(Protocol):
    """A source of chance, as `random.Random` is one; it comes in as an argument."""

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        ...


def next_try(retry: Retry, *, failures: int, rng: Chance, retry_after: float | None = None) -> float | None:
    """Seconds to wait after the nth failure (as after the first where none counts), or None when no attempt is left.

    The smaller of max_delay and base_delay * factor^(n - 1), times a random fraction when jitter is on. An
    endpoint's `Retry-After` (seconds) is honoured: the wait is never shorter, and at most seven days.
    """
    if failures >= retry.max_attempts:
        return None
    delay = _delay(retry, failures)
    if retry.jitter:
        delay *= rng.random()
    if retry_after is not None and math.isfinite(retry_after):
        delay = max(delay, min(retry_after, MAX_RETRY_AFTER))
    return delay


def _delay(retry: Retry, failures: int) -> float:
    try:
        grown = retry.base_delay * retry.factor ** (max(failures, 1) - 1)
    except OverflowError:
        return retry.max_delay
    return min(retry.max_delay, grown)
