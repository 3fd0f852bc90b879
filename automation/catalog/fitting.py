"""Reads what an action is to write as a value of a field, and says which fields a new record needs."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.translation import gettext as _

from automation.catalog.automatable import Automatable, Field
from automation.core.calendars import at_local
from automation.core.facts import encode

WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Unfit(ValueError):
    """The value can't be written to the field; the text says why, in words."""


def fit(entry: Automatable, path: str, value: Any, *, zone: ZoneInfo) -> Any:
    """The JSON form of a value for a field of a model, as `context.change` and `context.create` take it.

    Texts are read as the field's type, because a template gives texts only: "3" as a number, "a, b" as tags,
    "2026-03-01T09:00" as that time in the tenant's zone. An empty text empties the field. Raises Unfit.
    """
    field = entry.fields.get(path)
    if field is None:
        raise Unfit(_("There is no field “%(field)s”.") % {"field": path})
    if value is None or (isinstance(value, str) and not value.strip()):
        return _empty(field)
    try:
        raw = encode(_typed(field.type, value, zone), field.type)
    except (ValueError, ArithmeticError):
        names = {"field": field.label, "value": str(value)[:60]}
        raise Unfit(_("“%(value)s” doesn't fit the field “%(field)s”.") % names) from None
    _check_choice(field, raw)
    _check_length(entry, field, raw)
    return raw


def is_settable(entry: Automatable, path: str) -> bool:
    """Whether a new record may be given this field."""
    field = entry.fields.get(path)
    if field is None or not field.column:
        return False
    column = _column(entry, field)
    return column is not None and column.editable and not column.generated


def required(entry: Automatable) -> frozenset[str]:
    """The fields without which a new record can't be written."""
    return frozenset(
        column.name
        for column in entry.model._meta.concrete_fields
        if column.editable
        and not (column.generated or column.primary_key or column.null or column.blank)
        and not (column.has_default() or column.has_db_default())
        and column.name != "tenant"
    )


def _empty(field: Field) -> Any:
    if field.type in ("tags", "references"):
        return []
    if field.nullable:
        return None
    if field.type == "text":
        return ""
    raise Unfit(_("The field “%(field)s” can't be empty.") % {"field": field.label})


def _typed(type_: str, value: Any, zone: ZoneInfo) -> Any:
    if not isinstance(value, str):
        return str(value) if type_ in ("text", "choice") and isinstance(value, int | float) else value
    text = value.strip()
    if type_ == "boolean":
        return WORDS.get(text.lower(), text)
    if type_ == "reference":
        return int(text)
    if type_ in ("tags", "references"):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return parts if type_ == "tags" else [int(part) for part in parts]
    if type_ == "datetime":
        return _moment(text, zone)
    if type_ == "date":
        return date.fromisoformat(text[:10])
    return text if type_ in ("number", "choice") else value


def _moment(text: str, zone: ZoneInfo) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return at_local(moment.date(), moment.time(), zone)
    return moment.astimezone(UTC)


def _check_choice(field: Field, raw: Any) -> None:
    if field.choices and raw not in field.choice_values:
        names = {"field": field.label, "value": str(raw)[:60]}
        raise Unfit(_("“%(value)s” is none of the values of “%(field)s”.") % names)


def _check_length(entry: Automatable, field: Field, raw: Any) -> None:
    column = _column(entry, field)
    texts = raw if isinstance(raw, list) else [raw]
    most = getattr(getattr(column, "base_field", column), "max_length", None)
    if most is not None and any(isinstance(text, str) and len(text) > most for text in texts):
        raise Unfit(
            _("The text for “%(field)s” is longer than %(most)d characters.") % {"field": field.label, "most": most}
        )


def _column(entry: Automatable, field: Field) -> "models.Field[Any, Any] | None":
    try:
        found = entry.model._meta.get_field(field.orm_path)
    except FieldDoesNotExist:
        return None
    return found if isinstance(found, models.Field) else None
