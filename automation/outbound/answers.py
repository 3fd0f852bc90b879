"""What came back from the outside, and what it means for another try."""

import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from automation.outbound.masking import Masker

EXCERPT = 1024  # bytes of an answer that are kept
LONGEST_RETRY_AFTER = 24 * 3600.0  # seconds; a receiver that asks for more is asked again after a day
KEPT_HEADERS = ("content-type", "content-length", "date", "retry-after", "x-request-id", "request-id", "server")
TRY_AGAIN = frozenset({408, 409, 425, 429})
TEXTUAL = re.compile(r"text/|application/(?:[\w.+-]+\+)?(?:json|xml|x-www-form-urlencoded|problem)", re.ASCII)

Meaning = Literal["ok", "retry", "rejected"]
Failing = Literal["retry", "rejected", "maybe"]
Made = TypeVar("Made", covariant=True)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a status means: `ok`, `retry` (not before `retry_after` seconds, where given) or `rejected` for good."""

    meaning: Meaning
    error: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the outside. `body_text` is a masked excerpt of at most 1 kB; `elapsed` is in seconds.

    `headers` are the few that help to find a problem, in lower case and masked. `complete` is False when the body was
    cut at the size cap, at the deadline or by the other side. `body` holds up to 64 kB for the action alone: it is
    never stored and never shown.
    """

    status: int
    headers: Mapping[str, str]
    body_text: str
    elapsed: float
    complete: bool = True
    body: bytes = field(default=b"", repr=False)

    def json(self) -> Any:
        """The body as JSON, or None where it isn't."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class OutboundError(Exception):
    """Nothing was achieved for certain. The text is masked, short and fit to be stored.

    `failing`: `retry`: certainly nothing happened, another try may help; `rejected`: certainly nothing happened and no
    try will help; `maybe`: it was sent and nobody knows whether it was received. `timed_out`: there was no answer in
    time. `retry_after`: seconds that the receiver asked to wait. `answer`: where there was one.
    """

    def __init__(
        self,
        text: str,
        *,
        failing: Failing,
        timed_out: bool = False,
        retry_after: float | None = None,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(text)
        self.failing: Failing = failing
        self.timed_out = timed_out
        self.retry_after = retry_after
        self.answer = answer

    def outcome(self, outcomes: "Outcomes[Made]") -> "Made":
        """The same as an outcome of a step, made by the class that is handed in (`Outcome`)."""
        if self.failing == "rejected":
            return outcomes.rejected(str(self))
        if self.failing == "retry":
            return outcomes.retry(str(self), self.retry_after)
        return outcomes.timeout(str(self)) if self.timed_out else outcomes.uncertain(str(self))


class Outcomes(Protocol[Made]):
    """The class methods that make outcomes; the door knows no more of them."""

    def retry(self, error: str, retry_after: float | None = None) -> Made:
        """It surely didn't happen, and may succeed later."""

    def rejected(self, error: str) -> Made:
        """It didn't happen and never will as asked."""

    def uncertain(self, error: str) -> Made:
        """It may have happened."""

    def timeout(self, error: str) -> Made:
        """No answer in time; it may have happened."""


def judge(status: int, headers: Mapping[str, str], *, now: datetime) -> Judged:
    """Sorts a status: 2xx is done; 408, 409, 425, 429 and 5xx may pass; everything else won't, redirects included.

    `headers` by lower-case name; `now` is aware and is needed for a Retry-After that names a moment.
    """
    if 200 <= status < 300:
        return Judged(meaning="ok")
    error = f"The receiver answered {status}."
    if status in TRY_AGAIN or status >= 500:
        return Judged(meaning="retry", error=error, retry_after=retry_after(headers.get("retry-after"), now=now))
    if 300 <= status < 400:
        error = f"The receiver answered {status}, a redirect, which is never followed."
    return Judged(meaning="rejected", error=error)


def retry_after(value: str | None, *, now: datetime) -> float | None:
    """Reads a Retry-After header, in seconds from now, at most a day; None where it says nothing usable."""
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(value)
        seconds = (moment - now).total_seconds()
    except (ValueError, TypeError, OverflowError):  # TypeError: a moment without a zone
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def excerpt(body: bytes, headers: Mapping[str, str], mask: Masker) -> str:
    """The beginning of a body as masked text of at most 1 kB; anything that isn't plain text is only described."""
    if not body:
        return ""
    kind = headers.get("content-type", "text/plain")
    if headers.get("content-encoding", "identity") != "identity" or not TEXTUAL.match(kind) or b"\0" in body:
        return mask(f"[{len(body)} bytes that aren't text]")
    text = mask(body.decode("utf-8", "replace"))
    visible = "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)
    return visible.encode("utf-8", "replace")[:EXCERPT].decode("utf-8", "ignore")


def kept_headers(headers: Mapping[str, str], mask: Masker) -> dict[str, str]:
    """The headers worth keeping, masked, each at most 200 characters."""
    return {name: mask(headers[name])[:200] for name in KEPT_HEADERS if name in headers}
