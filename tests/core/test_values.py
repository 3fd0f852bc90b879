"""Values keep their meaning through JSON, and what no database can hold is taken out before it gets there."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.facts import NotThisType, clean, cut_text, decode, encode, same

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    "number": st.integers() | st.decimals(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "datetime": st.datetimes(timezones=st.just(UTC)),
    "tags": st.frozensets(st.text("abß")),
    "reference": st.integers(1, 2**63 - 1),
    "references": st.frozensets(st.integers(1, 10**6)),
}


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_a_value_comes_back_from_its_json_form(data: st.DataObject, type_: str) -> None:
    value = data.draw(VALUES[type_])
    raw = json.loads(json.dumps(encode(value, type_)))
    assert decode(raw, type_) == value
    assert encode(raw, type_) == encode(value, type_)
    assert same(raw, value, type_)


@pytest.mark.case("L13")
@pytest.mark.parametrize(
    ("one", "other", "type_"),
    [
        ("1.50", Decimal("1.5"), "number"),
        (2, "2.0", "number"),
        ("2026-05-01T12:00:00+02:00", datetime(2026, 5, 1, 10, tzinfo=UTC), "datetime"),
        (["b", "a", "a"], ["a", "b"], "tags"),
        ([3, 1], [1, 3], "references"),
        (None, None, "text"),
    ],
)
def test_notations_of_one_value_are_no_change(one: Any, other: Any, type_: str) -> None:
    assert same(one, other, type_)


@pytest.mark.parametrize(("one", "other"), [(None, ""), ("a", "A"), ("a", None)])
def test_texts_are_the_same_only_to_the_letter(one: Any, other: Any) -> None:
    assert not same(one, other, "text")


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("abc", "number"),
        (True, "number"),
        ("NaN", "number"),
        (float("inf"), "number"),
        (5, "text"),
        ("true", "boolean"),
        ("2026-13-01", "date"),
        (datetime(2026, 1, 1, tzinfo=UTC), "date"),
        (datetime(2026, 1, 1), "datetime"),  # noqa: DTZ001 - an instant without its offset is the point
        ("vip", "tags"),
        ([1], "tags"),
        ("5", "reference"),
        ({"id": 5}, "reference"),
    ],
)
def test_a_value_of_another_type_is_refused(value: Any, type_: str) -> None:
    with pytest.raises(NotThisType, match=type_):
        encode(value, type_)


def test_a_number_with_a_huge_exponent_stays_short() -> None:
    assert encode(Decimal("1e99999"), "number") == "1E+99999"


def test_instants_are_kept_in_utc_and_so_sort_as_text() -> None:
    zone = timezone(timedelta(hours=5))
    assert encode(datetime(2026, 1, 1, 3, tzinfo=zone), "datetime") == "2025-12-31T22:00:00.000000+00:00"
    assert encode(date(2026, 1, 1), "date") == "2026-01-01"


@pytest.mark.parametrize(("text", "expected"), [("a\x00b", "ab"), ("\ud800x", "x"), ("\U0001f600", "\U0001f600")])
def test_nul_and_lone_surrogates_are_taken_out_everywhere(text: str, expected: str) -> None:
    assert clean({"k\x00": [text, {"n": text}], "m": 5}) == {"k": [expected, {"n": expected}], "m": 5}


def test_a_deeply_nested_value_is_refused_in_words() -> None:
    deep: Any = []
    for _level in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested"):
        clean(deep)


def test_a_long_text_is_cut_at_a_whole_letter() -> None:
    assert cut_text("a" * 8192) == ("a" * 8192, False)
    assert cut_text("ä" * 4097) == ("ä" * 4096, True)
    text, cut = cut_text("x" + "\U0001f600" * 3000)
    assert cut
    assert len(text.encode()) <= 8192
    assert text == "x" + "\U0001f600" * 2047


def test_data_without_a_type_keeps_its_shape_and_loses_what_cannot_be_stored() -> None:
    assert encode({"a": [1, {"b": "x\x00"}], "c": None}, "any") == {"a": [1, {"b": "x"}], "c": None}
    assert encode(Decimal("1.50"), "any") == "1.50"
