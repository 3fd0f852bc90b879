"""Fields of a Django model read as fields that rules know."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.text import format_lazy

from automation.catalog.automatable import Field

_TYPES: "tuple[tuple[type[models.Field[Any, Any]], str], ...]" = (
    (models.BooleanField, "boolean"),
    (models.DateTimeField, "datetime"),  # before DateField, of which it is a subclass
    (models.DateField, "date"),
    (models.DecimalField, "number"),
    (models.IntegerField, "number"),
    (models.FloatField, "number"),
    (models.AutoField, "number"),
    (models.CharField, "text"),
    (models.TextField, "text"),
    (models.UUIDField, "text"),
)


class BadPath(ValueError):
    """A path that leads to nothing a rule could know; the text says where it breaks off."""


def build_fields(
    model: type[models.Model], *, watch: Sequence[str], read: Sequence[str], change: Sequence[str]
) -> tuple[dict[str, Field], list[str]]:
    """The fields by path, in the order declared, and a message for every path that is wrong."""
    fields: dict[str, Field] = {}
    wrong: list[str] = []
    for path in dict.fromkeys([*watch, *read, *change]):
        try:
            fields[path] = _field(model, path, watch=path in watch, change=path in change)
        except BadPath as error:
            wrong.append(str(error))
    return fields, wrong


def unfollowable(fields: Mapping[str, Field], path: str, source: str, values: Mapping[str, str]) -> str:
    """Why a field can't be said to follow from another by these values; "" where it can."""
    if path not in fields or source not in fields:
        return f"{path!r} can't follow {source!r}: one of them is no field that rules know"
    if fields[path].type != "choice" or fields[source].type != "choice" or fields[path].watch:
        return f"{path!r} can't follow {source!r}: both must be choices, and a change of it is none of its own"
    left = sorted(fields[source].choice_values - {str(one) for one in values})
    return f"{path!r} says nothing for {', '.join(left)} of {source!r}" if left else ""


def _field(model: type[models.Model], path: str, *, watch: bool, change: bool) -> Field:
    *way, last = path.split(".")
    holder, nullable, labels = model, False, []
    for part in way:
        relation = _resolve(holder, part, path)
        if not isinstance(relation, models.ForeignKey):
            raise BadPath(f"{path!r} goes through {part!r} of {_name(holder)}, which isn't a link to one record")
        nullable = nullable or relation.null
        labels.append(relation.verbose_name)
        holder = relation.related_model
    if way and (watch or change):
        raise BadPath(f"{path!r} can only be read: a change of {_name(holder)} is that record's own event")
    found = _resolve(holder, last, path)
    # What a column of the database's own making holds is its output field's business.
    value = found.output_field if isinstance(found, models.GeneratedField) else found
    type_, target, counts = _type(value, path, holder)
    column = "" if isinstance(found, models.ManyToManyField) else getattr(found, "column", None) or ""
    if change and not column and type_ != "references":
        raise BadPath(f"{path!r} can't be changed: it isn't a column of {_name(model)}")
    return Field(
        path=path,
        type=type_,
        label_text=_label(found, labels),
        orm_path="__".join([*way, last]),
        column="" if way else column,
        choices=tuple(_choices(value)),
        watch=watch,
        change=change,
        target=target,
        nullable=nullable or (not counts and bool(getattr(found, "null", False))),
        counts=counts,
        whole=counts or _is_whole(value),
    )


def _resolve(model: type[models.Model], part: str, path: str) -> Any:
    try:
        return model._meta.get_field(part)
    except FieldDoesNotExist:
        pass
    for relation in model._meta.related_objects:
        if relation.get_accessor_name() == part:
            return relation
    raise BadPath(f"{path!r} names nothing: {_name(model)} has no field {part!r}") from None


def _type(found: Any, path: str, holder: type[models.Model]) -> tuple[str, str, bool]:
    """(type, model that a reference points to, whether the value is a number of rows)."""
    if isinstance(found, models.ForeignObjectRel):
        if found.one_to_many:
            return "number", "", True
        raise BadPath(f"{path!r} is a link from another model to {_name(holder)} that rules can't read")
    if isinstance(found, models.ManyToManyField | models.ForeignKey):
        kind = "references" if isinstance(found, models.ManyToManyField) else "reference"
        return kind, found.related_model._meta.label_lower, False
    if _is_choice(found):
        return "choice", "", False
    if isinstance(found, ArrayField) and isinstance(found.base_field, models.CharField | models.TextField):
        return "tags", "", False
    for kind_of_field, type_ in _TYPES:
        if isinstance(found, kind_of_field):
            return type_, "", False
    raise BadPath(f"{path!r} is a {type(found).__name__}, which rules can't read")


def _is_whole(found: Any) -> bool:
    """Whether the database keeps whole numbers only."""
    if isinstance(found, models.DecimalField):
        return found.decimal_places == 0
    return isinstance(found, models.IntegerField | models.AutoField)


def _is_choice(found: Any) -> bool:
    return isinstance(found, models.CharField | models.TextField) and bool(found.choices)


def _choices(found: Any) -> Iterable[tuple[str, Any]]:
    if _is_choice(found):
        yield from ((str(value), label) for value, label in found.flatchoices if value)


def _label(found: Any, labels: list[Any]) -> Any:
    is_link_back = isinstance(found, models.ForeignObjectRel)
    own = found.related_model._meta.verbose_name_plural if is_link_back else found.verbose_name
    return format_lazy("{} " * len(labels) + "{}", *labels, own) if labels else own


def _name(model: type[models.Model]) -> str:
    return model._meta.label_lower
