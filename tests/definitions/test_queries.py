"""A query finds exactly the rows that the conditions of core hold for, on a real PostgreSQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import definition_models as models
import pytest
from definition_models import CASE, Case, Firm, Person, Remark
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from automation.core.calendars import Span
from automation.core.conditions import compile_condition
from automation.core.facts import encode
from automation.core.folding import FOLDS, fold
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Group, Leaf
from automation.definitions.queries import NotAQuery, to_q

NASTY = "aAbBzZßẞſKkKÅåÅİıiIςσΣﬁΏώöÖéÉeé%_\\'\" \t\n\u00a0\u3000\u200b.*^$0123ǅǆǰJ̌ɐⱯ𐐀𐐨ŉΐµμμ"  # noqa: RUF001 - the point of it
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe")]
NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
SMALL = [timedelta(0), timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1), timedelta(days=7)]


@pytest.fixture(scope="module", autouse=True)
def _tables(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        with connection.schema_editor() as editor:
            for model in models.MODELS:
                editor.create_model(model)
        yield
        with connection.schema_editor() as editor:
            for model in reversed(models.MODELS):
                editor.delete_model(model)


def letters() -> st.SearchStrategy[str]:
    """Characters of which both sides know the composition, and many that folding is hard for."""
    assigned = st.characters(exclude_categories=["Cs", "Cn", "Co"], exclude_characters="\x00")
    return st.sampled_from(NASTY) | st.sampled_from(sorted(map(chr, FOLDS))) | assigned


TEXTS = st.text(letters(), max_size=6) | st.sampled_from(["", " ", "null", "Straße", "STRASSE", "\u3000\t", "%", "a_b"])
WORDS = TEXTS.filter(lambda text: bool(text.strip()))
NUMBERS = st.sampled_from([0, 1, -1, 2, 49, 50, 51]) | st.decimals(-1000, 1000, places=3)
DAYS = st.sampled_from([date(2026, 3, 27) + timedelta(days=n) for n in range(5)] + [date(2025, 3, 29)])
MOMENTS = st.builds(
    lambda start, step, sign: start + sign * step,
    st.sampled_from([NOW, datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)]),
    st.sampled_from(SMALL),
    st.sampled_from([1, -1]),
)
TAGS = st.lists(st.sampled_from(["vip", "VIP", "a", "b", "ß", "%"]), max_size=3)


@dataclass(frozen=True)
class Row:
    """One case with what belongs to it."""

    columns: dict[str, Any]
    firm: dict[str, Any] | None
    followers: int
    remarks: int


def rows() -> st.SearchStrategy[Row]:
    """Rows with every kind of value, and with none."""
    columns = st.fixed_dictionaries(
        {
            "title": st.none() | TEXTS,
            "other": st.none() | TEXTS,
            "kind": st.none() | st.sampled_from(["", "a", "A", "b"]),
            "count": st.none() | st.sampled_from([0, 1, 2, 50, 51]),
            "amount": st.none() | st.decimals(-1000, 1000, places=3) | st.sampled_from([Decimal("1.5"), Decimal(50)]),
            "flag": st.none() | st.booleans(),
            "day": st.none() | DAYS,
            "moment": st.none() | MOMENTS,
            "later": st.none() | MOMENTS,
            "tags": st.none() | TAGS,
            "short_tags": st.none() | TAGS,
        }
    )
    firm = st.fixed_dictionaries(
        {
            "name": TEXTS,
            "plan": st.sampled_from(["gold", "Gold", "free"]),
            "size": st.none() | st.sampled_from([0, 50, 51]),
        }
    )
    return st.builds(Row, columns, st.none() | firm, st.integers(0, 7), st.integers(0, 2))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS,
    "choice": st.sampled_from(["a", "A", "b", "gold", "Gold"]),
    "number": NUMBERS.map(lambda number: Decimal(str(number))),
    "boolean": st.booleans(),
    "date": DAYS,
    "reference": st.integers(1, 3),
}
SPANS = st.sampled_from(
    [Span(), Span(days=1), Span(months=1), Span(days=7), Span(days=1, seconds=3600), Span(0, 0, 3600)]
)


def wanted(op: str, type_: str) -> st.SearchStrategy[Any]:
    """Values that an operator compares a field of the type with."""
    wants = OPERATORS[op].wants
    if wants == "list":
        item = st.integers(1, 3) if type_ == "references" else VALUES.get(type_, st.sampled_from(["vip", "VIP", "a"]))
        return st.frozensets(item, min_size=1, max_size=3)
    if wants in ("span", "days"):
        return SPANS.filter(lambda span: not span.seconds or (wants == "span" and type_ == "datetime"))
    if wants == "time":
        return DAYS if type_ == "date" else DAYS | MOMENTS
    return st.none() if wants == "none" else VALUES[type_]


PAIRS = [(path, other) for path in CASE.fields for other in CASE.fields if path != other]


@st.composite
def leaf(draw: st.DrawFn) -> Leaf:
    """Any comparison that a record can answer, with a value or with another field."""
    field = draw(st.sampled_from(list(CASE.fields.values())))
    named = sorted(op.name for op in OPERATORS.values() if field.type in op.types and op.reads == "value")
    op = draw(st.sampled_from(named))
    others = [other for path, other in PAIRS if path == field.path and CASE.fields[other].type == field.type]
    if OPERATORS[op].other_field and others and draw(st.integers(0, 3)) == 0:
        return Leaf("c_1", field.path, op, None, field.type, draw(st.sampled_from(others)))
    return Leaf("c_1", field.path, op, draw(wanted(op, field.type)), field.type)


UNKNOWN = st.sampled_from([Leaf("c_1", "gone", "is", "a"), Leaf("c_1", "title", "resembles", "a")])
CONDITIONS = st.recursive(
    leaf() | leaf() | leaf() | leaf() | UNKNOWN,
    lambda inner: st.builds(
        lambda mode, items: Group("g_1", mode, tuple(items)),
        st.sampled_from(["all", "any", "none"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


def write(row: Row, people: list[Person]) -> int:
    """Write a row with all that belongs to it; returns its id."""
    firm = None if row.firm is None else Firm._base_manager.create(**row.firm)
    case = Case._base_manager.create(firm=firm, **row.columns)
    case.followers.set([person for bit, person in enumerate(people) if row.followers >> bit & 1])
    for _number in range(row.remarks):
        Remark._base_manager.create(case=case)
    return int(case.pk)


def snapshot(case: Any) -> dict[str, Any]:
    """The values of a stored case in their JSON forms, as an event carries them."""
    values: dict[str, Any] = {}
    for path, field in CASE.fields.items():
        if field.type == "references":
            value: Any = list(case.followers.values_list("pk", flat=True))
        elif field.counts:
            value = case.remarks.count()
        elif "." in path:
            value = None if case.firm is None else getattr(case.firm, path.partition(".")[2])
        else:
            value = getattr(case, field.column)
        values[path] = encode(value, field.type)
    return values


def found_both_ways(condition: Condition, moment: Moment, ids: list[int]) -> tuple[set[int], set[int]]:
    """The ids of rows that the query finds, and of those that core finds true."""
    by_query = set(Case._base_manager.filter(to_q(condition, CASE, moment), pk__in=ids).values_list("pk", flat=True))
    judge = compile_condition(condition)
    cases = Case._base_manager.filter(pk__in=ids).select_related("firm")
    by_core = {case.pk for case in cases if judge({"snapshot": snapshot(case)}, moment).is_true}
    return by_query, by_core


@pytest.mark.case("C07")
@pytest.mark.case("C08")
@pytest.mark.django_db
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(rows(), min_size=1, max_size=5),
    st.lists(CONDITIONS, min_size=1, max_size=5),
    st.sampled_from(ZONES),
    st.sampled_from([NOW, NOW + timedelta(hours=1), datetime(2026, 3, 28, 22, 59, 59, 999999, tzinfo=UTC)]),
)
def test_a_query_finds_exactly_the_rows_that_the_condition_holds_for(
    table: list[Row], conditions: list[Condition], zone: ZoneInfo, now: datetime
) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER SEQUENCE test_person_id_seq RESTART WITH 1")
            cursor.execute("ALTER SEQUENCE test_firm_id_seq RESTART WITH 1")
        people = [Person._base_manager.create() for _number in range(3)]
        ids = [write(row, people) for row in table]
        for condition in conditions:
            by_query, by_core = found_both_ways(condition, Moment(now, zone), ids)
            assert by_query == by_core, condition
        transaction.set_rollback(True)


@pytest.mark.django_db
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@example("İ", "i̇")
@example("ß", "SS")
@example("ς", "Σ")
@example("ǰ", "J̌")
@given(TEXTS, TEXTS)
def test_both_sides_hold_the_same_texts_for_equal(one: str, other: str) -> None:
    condition = Leaf("c_1", "title", "is", None, "text", "other")
    with transaction.atomic():
        case = Case._base_manager.create(title=one, other=other)
        by_query, _by_core = found_both_ways(condition, Moment(NOW, ZONES[0]), [case.pk])
        assert (case.pk in by_query) == (fold(one) == fold(other))
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_every_letter_that_has_two_cases_folds_alike_in_python_and_in_postgresql() -> None:
    codes = sorted(FOLDS)
    ids = {}
    for chunk in (codes[at : at + 100] for at in range(0, len(codes), 100)):
        text = "".join(map(chr, chunk))
        ids[Case._base_manager.create(title=text, other=fold(text)).pk] = text
    condition = Leaf("c_1", "title", "is", None, "text", "other")
    by_query, by_core = found_both_ways(condition, Moment(NOW, ZONES[0]), list(ids))
    assert by_query == by_core == set(ids)


@pytest.mark.case("C17")
@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["all", "any", "none"])
def test_an_empty_group_finds_no_row_even_inside_another(mode: Any) -> None:
    case = Case._base_manager.create()
    empty = Group("g_1", mode, ())
    for condition in (empty, Group("g_2", "none", (empty,)), Group("g_2", "all", (empty,))):
        assert found_both_ways(condition, Moment(NOW, ZONES[0]), [case.pk]) == (set(), set())


@pytest.mark.django_db
def test_no_condition_finds_every_row() -> None:
    case = Case._base_manager.create()
    assert Case._base_manager.filter(to_q(None, CASE, Moment(NOW, ZONES[0]))).get() == case


@pytest.mark.parametrize("field", ["title", "event.amount"])
def test_what_only_an_event_can_answer_is_refused_as_a_query(field: str) -> None:
    op = "changed_to" if field == "title" else "is"
    with pytest.raises(NotAQuery, match="event"):
        to_q(Leaf("c_1", field, op, "x"), CASE, Moment(NOW, ZONES[0]))


@pytest.mark.django_db
def test_a_choice_is_found_by_its_plain_column_so_that_an_index_serves_it() -> None:
    condition = Group(
        "g_1", "all", (Leaf("c_1", "kind", "is", "a", "choice"), Leaf("c_2", "count", "gt", Decimal(5), "number"))
    )
    where = str(Case._base_manager.filter(to_q(condition, CASE, Moment(NOW, ZONES[0]))).query).partition("WHERE")[2]
    assert '"test_case"."kind" = a' in where
    assert '"test_case"."count" > 5' in where


def test_the_operators_of_both_tables_have_the_same_names() -> None:
    moment = Moment(NOW, ZONES[0])
    for one, other in pairwise(sorted(OPERATORS)):
        assert one != other
    for op in OPERATORS.values():
        if op.reads == "value":
            assert to_q(Leaf("c_1", "gone", op.name), CASE, moment) is not None
