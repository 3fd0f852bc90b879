"""Fields of a model as SQL that means what core means: text folded alike, lists as sets, missing as NULL."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Exists, F, Func, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Cast, Coalesce, Collate, Length, Lower
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, IsNull, LessThan, LessThanOrEqual

from automation.catalog.automatable import Field
from automation.core.folding import BLANK, FOLD_FROM, FOLD_TO, fold

TEXT, TEXTS, YES_NO = models.TextField(), ArrayField(models.TextField()), models.BooleanField()
_ORDERS = {"gt": GreaterThan, "gte": GreaterThanOrEqual, "lt": LessThan, "lte": LessThanOrEqual}
_VALUE_FIELDS: tuple[tuple[type, models.Field[Any, Any]], ...] = (
    (bool, YES_NO),
    (int, models.BigIntegerField()),
    (Decimal, models.DecimalField()),
    (datetime, models.DateTimeField()),  # before date, of which it is a kind
    (date, models.DateField()),
    (str, TEXT),
)


class Column:
    """A field of a model where it is read: `field` as rules know it, found from the rows of `model`."""

    def __init__(self, field: Field, model: type[models.Model]) -> None:
        """The column of a field."""
        self.field = field
        *self.way, self.last = field.orm_path.split("__")
        holder = model
        for part in self.way:
            holder = holder._meta.get_field(part).related_model  # type: ignore[assignment]
        self.holder = holder
        self.found: Any = _find(holder, self.last)

    @property
    def folds(self) -> bool:
        """Whether letters' case doesn't count."""
        return self.field.type == "text"

    @property
    def value(self) -> Any:
        """The column's value, NULL where there is none."""
        if self.field.counts:
            return self._count()
        if self.field.type == "reference":
            return F(f"{self.field.orm_path}_id")
        if self.field.type == "tags":
            is_text = isinstance(self.found.base_field, models.TextField)
            return F(self.field.orm_path) if is_text else Cast(F(self.field.orm_path), TEXTS)
        is_text = isinstance(self.found, models.CharField | models.TextField | models.GeneratedField)
        return F(self.field.orm_path) if is_text or not self.folds else Cast(F(self.field.orm_path), TEXT)

    def folded(self) -> Any:
        """The text as it is compared, as core.folding.fold gives it."""
        return _folded(self.value)

    def equals(self, wanted: Any) -> Q:
        """Equality to the letter."""
        return equal(self.value, wanted)

    def among(self, wanted: Iterable[Any]) -> Q:
        """Equality with one of several."""
        return among(self.value, wanted)

    def ordered(self, order: str, wanted: Any) -> Q:
        """An order: gt, gte, lt or lte."""
        return Q(_ORDERS[order](self.value, _operand(wanted)))

    def is_filled(self) -> Q:
        """Whether there is more than white space, or at least one item; never NULL."""
        if self.field.type == "references":
            return Q(Exists(self._links()))
        if self.field.type == "tags":
            size = Func(self.value, function="cardinality", output_field=models.IntegerField())
            return Q(GreaterThan(Coalesce(size, 0), 0))
        there = Q(IsNull(self.value, False))
        if self.field.type not in ("text", "choice"):
            return there
        trimmed = Func(self.value, Value(BLANK), function="btrim", output_field=TEXT)
        return there & Q(GreaterThan(Length(trimmed), 0))

    def has_any(self, wanted: frozenset[Any]) -> Q:
        """At least one item in common."""
        if self.field.type == "references":
            return Q(Exists(self._links().filter(**{f"{self._target}__in": sorted(wanted)})))
        return _compared(self.value, "&&", _texts(wanted))

    def has_all(self, wanted: frozenset[Any]) -> Q:
        """Every wanted item is there."""
        if self.field.type != "references":
            return _compared(self.value, "@>", _texts(wanted))
        links = (Q(Exists(self._links().filter(**{self._target: item}))) for item in sorted(wanted))
        return reduce(lambda one, other: one & other, links)

    def has_exactly(self, wanted: frozenset[Any]) -> Q:
        """The wanted items and no others."""
        if self.field.type != "references":
            return self.has_all(wanted) & _compared(self.value, "<@", _texts(wanted))
        others = self._links().exclude(**{f"{self._target}__in": sorted(wanted)})
        return self.has_all(wanted) & ~Q(Exists(others))

    @property
    def _outer(self) -> str:
        return "__".join([*self.way, "pk"])

    @property
    def _target(self) -> str:
        return f"{self.found.m2m_reverse_field_name()}_id"

    def _links(self) -> Any:
        """The rows of a many-to-many link that belong to the record."""
        through = self.found.remote_field.through
        return through._base_manager.filter(**{f"{self.found.m2m_field_name()}_id": OuterRef(self._outer)})

    def _count(self) -> Any:
        """The number of rows that point to the record; NULL where the record on the way is missing."""
        name, rows = self.found.field.attname, self.found.related_model._base_manager
        found = rows.filter(**{name: OuterRef(self._outer)}).order_by().values(name)
        number = Coalesce(Subquery(found.annotate(number=models.Count("pk")).values("number")), 0)
        if not self.way:
            return number
        return Case(When(Q(IsNull(F(self._outer), False)), then=number), output_field=models.IntegerField())


def folded(wanted: Any) -> Any:
    """A wanted text, or another column, in the form in which texts are compared."""
    return wanted.folded() if isinstance(wanted, Column) else Value(fold(wanted), output_field=TEXT)


def equal(one: Any, other: Any) -> Q:
    """One expression equals another, or a value."""
    return Q(Exact(one, _operand(other)))


def among(one: Any, wanted: Iterable[Any]) -> Q:
    """An expression equals one of several values."""
    return reduce(or_, (equal(one, item) for item in wanted))


def contains(text: Any, part: Any) -> Q:
    """A text lies in another; no character of it has a meaning of its own."""
    return Q(GreaterThan(Func(text, part, function="strpos", output_field=models.IntegerField()), 0))


def starts(text: Any, part: Any) -> Q:
    """A text begins with another."""
    return Q(Func(text, part, function="starts_with", output_field=YES_NO))


def isnt_true(condition: Q) -> Q:
    """False and NULL become true, true becomes false."""
    return Q(Func(condition, template="((%(expressions)s) IS NOT TRUE)", output_field=YES_NO))


def _folded(text: Any) -> Any:
    composed = _normalized(text)
    letters = Func(composed, Value(FOLD_FROM), Value(FOLD_TO), function="translate", output_field=TEXT)
    is_ascii = Exact(Func(text, function="octet_length", output_field=models.IntegerField()), Length(text))
    return Case(When(Q(is_ascii), then=Lower(Collate(text, "C"))), default=_normalized(letters), output_field=TEXT)


def _normalized(text: Any) -> Any:
    return Func(text, template="normalize(%(expressions)s, NFC)", output_field=TEXT)


def _compared(one: Any, sign: str, other: Any) -> Q:
    return Q(Func(one, other, template="(%(expressions)s)", arg_joiner=f" {sign} ", output_field=YES_NO))


def _texts(items: Iterable[str]) -> Any:
    return Cast(Value(sorted(items), output_field=TEXTS), TEXTS)


def _operand(wanted: Any) -> Any:
    """A value with its type, so that no column rounds or cuts it; expressions pass."""
    if isinstance(wanted, Column):
        return wanted.value
    for kind, field in _VALUE_FIELDS:
        if isinstance(wanted, kind):
            return Value(wanted, output_field=field)
    return wanted


def _find(model: type[models.Model], name: str) -> Any:
    for relation in model._meta.related_objects:
        if relation.get_accessor_name() == name:
            return relation
    return model._meta.get_field(name)
