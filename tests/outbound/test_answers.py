"""What an answer means, and what of it is kept."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.outbound import Masker, OutboundError, judge, retry_after
from automation.outbound.answers import LONGEST_RETRY_AFTER, excerpt

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_2xx_is_done(status: int) -> None:
    assert judge(status, {}, now=NOW).meaning == "ok"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    assert judge(status, {}, now=NOW).meaning == "retry"


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 410, 422])
def test_what_will_not_pass_is_rejected(status: int) -> None:
    judged = judge(status, {"retry-after": "5"}, now=NOW)
    assert (judged.meaning, judged.retry_after) == ("rejected", None)
    assert str(status) in judged.error


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("999999999999999999999", LONGEST_RETRY_AFTER),
        ("Sun, 01 Mar 2036 12:00:30 GMT", LONGEST_RETRY_AFTER),
        ("-5", None),
        ("soon", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_moment(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, now=NOW) == seconds


@given(st.text(max_size=60))
def test_any_retry_after_is_survived(value: str) -> None:
    found = retry_after(value, now=NOW)
    assert found is None or 0 <= found <= LONGEST_RETRY_AFTER


@pytest.mark.case("W02")
def test_an_excerpt_is_text_of_at_most_a_kilobyte() -> None:
    assert len(excerpt("ä".encode() * 50_000, {"content-type": "text/plain"}, Masker([])).encode()) <= 1024
    assert excerpt(b"\x1f\x8b\x08", {"content-encoding": "gzip"}, Masker([])) == "[3 bytes that aren't text]"
    assert excerpt(b"\x89PNG", {"content-type": "image/png"}, Masker([])) == "[4 bytes that aren't text]"
    assert excerpt(b"a\0b", {}, Masker([])) == "[3 bytes that aren't text]"
    assert excerpt(b"ok\x1b[31m", {}, Masker([])) == "ok [31m"


class Named:
    """Outcomes as plain text."""

    def retry(self, error: str, retry_after: float | None = None) -> str:
        return f"retry {error} {retry_after}"

    def rejected(self, error: str) -> str:
        return f"rejected {error}"

    def uncertain(self, error: str) -> str:
        return f"uncertain {error}"

    def timeout(self, error: str) -> str:
        return f"timeout {error}"


def test_an_error_becomes_the_outcome_that_it_means() -> None:
    named = Named()
    assert OutboundError("no", failing="retry", retry_after=7.0).outcome(named) == "retry no 7.0"
    assert OutboundError("no", failing="retry", timed_out=True).outcome(named) == "retry no None"
    assert OutboundError("no", failing="rejected").outcome(named) == "rejected no"
    assert OutboundError("no", failing="maybe").outcome(named) == "uncertain no"
    assert OutboundError("no", failing="maybe", timed_out=True).outcome(named) == "timeout no"
