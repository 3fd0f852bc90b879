"""Months, days and seconds are three different things, and clocks that jump are met at defined instants."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.calendars import Span, add, at_local, day_start, move_date, subtract

BERLIN, LORD_HOWE, APIA = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Pacific/Apia")
SPANS = st.builds(Span, st.integers(0, 60), st.integers(0, 500), st.integers(0, 10**6))
ZONES = st.sampled_from([BERLIN, LORD_HOWE, APIA, ZoneInfo("America/New_York"), ZoneInfo("UTC")])
MOMENTS = st.integers(1_100_000_000, 2_200_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(SPANS)
def test_a_span_survives_its_notation(span: Span) -> None:
    assert Span.parse(span.iso()) == span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("P1D", Span(days=1)),
        ("PT24H", Span(seconds=86_400)),
        ("P1M", Span(months=1)),
        ("PT1M", Span(seconds=60)),
        ("P1Y2W", Span(months=12, days=14)),
        ("PT0S", Span()),
        ("P0D", Span()),
    ],
)
def test_a_day_is_not_24_hours_and_a_month_is_not_30_days(text: str, span: Span) -> None:
    assert Span.parse(text) == span


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "P-1D", "PT0.5S", "p1d", "P1H", "P\u0661D", "P1D ", "P200Y", "P9999999999D"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|hundred"):
        Span.parse(text)


@pytest.mark.case("T19")
def test_a_zero_span_is_a_length_and_adds_nothing() -> None:
    now = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert Span().is_zero
    assert add(now, Span(), BERLIN) == now


def test_a_day_keeps_the_local_time_when_the_clocks_change() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert add(before, Span(days=1), BERLIN) == datetime(2026, 3, 29, 12, tzinfo=BERLIN)
    assert add(before, Span(seconds=86_400), BERLIN) == datetime(2026, 3, 29, 13, tzinfo=BERLIN)


def test_a_local_time_that_does_not_exist_is_the_first_instant_after_the_gap() -> None:
    gap = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert at_local(date(2026, 3, 29), time(2, 30), BERLIN) == gap
    assert add(datetime(2026, 3, 28, 2, 30, tzinfo=BERLIN), Span(days=1), BERLIN) == gap
    assert at_local(date(2026, 10, 4), time(2, 10), LORD_HOWE) == datetime(2026, 10, 3, 15, 30, tzinfo=UTC)


def test_a_day_that_does_not_exist_begins_where_the_next_one_does() -> None:
    assert day_start(date(2011, 12, 30), APIA) == day_start(date(2011, 12, 31), APIA)


def test_a_local_time_that_occurs_twice_is_the_first_of_the_two() -> None:
    assert at_local(date(2026, 10, 25), time(2, 30), BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_hours_are_exact_through_a_repeated_hour() -> None:
    second_half_past_two = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert add(second_half_past_two, Span(seconds=60), BERLIN) == second_half_past_two + timedelta(minutes=1)


def test_the_end_of_a_month_stays_the_end_of_a_month() -> None:
    assert move_date(date(2026, 1, 31), Span(months=1)) == date(2026, 2, 28)
    assert move_date(date(2028, 2, 29), Span(months=12)) == date(2029, 2, 28)
    assert move_date(date(2026, 3, 31), Span(months=1), sign=-1) == date(2026, 2, 28)


@given(MOMENTS, SPANS, ZONES)
def test_time_only_goes_forward_when_a_span_is_added(moment: datetime, span: Span, zone: ZoneInfo) -> None:
    later = add(moment, span, zone)
    assert later >= moment - timedelta(hours=1)  # a repeated hour may be taken at its first occurrence
    assert later.tzinfo is UTC
    if span.is_exact:
        assert later - moment == timedelta(seconds=span.seconds)


@given(MOMENTS, st.integers(0, 10**6), ZONES)
def test_exact_spans_are_undone_by_subtracting_them(moment: datetime, seconds: int, zone: ZoneInfo) -> None:
    assert subtract(add(moment, Span(seconds=seconds), zone), Span(seconds=seconds), zone) == moment


@given(st.dates(date(2005, 1, 1), date(2039, 1, 1)), st.times(), ZONES)
def test_a_local_time_that_exists_is_shown_by_the_clock_at_its_instant(day: date, clock: time, zone: ZoneInfo) -> None:
    local = at_local(day, clock, zone).astimezone(zone)
    naive = datetime.combine(day, clock)
    assert local.replace(tzinfo=None) >= naive
    if local.replace(tzinfo=None) > naive:  # in a gap: what the clock showed last was before it
        just_before = (at_local(day, clock, zone) - timedelta(microseconds=1)).astimezone(zone)
        assert just_before.replace(tzinfo=None) < naive
