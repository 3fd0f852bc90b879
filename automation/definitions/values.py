"""What a condition compares with, converted once from its JSON form to the value that the operator works on."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from django.utils.translation import gettext as _

from automation.catalog.automatable import Field
from automation.core.calendars import Span
from automation.core.folding import is_blank
from automation.core.operators import Operator
from automation.core.values import NotThisType, decode_strictly

MAX_LIST = 200
MAX_TEXT = 1000


class BadValue(ValueError):
    """A value that doesn't fit, in words for people; `part` is the place below the value."""

    def __init__(self, message: str, part: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.part = part


def converted(operator: Operator, field: Field, raw: Any) -> tuple[Any, str]:
    """The value, and the type that it is compared as: the field's, or for an event's own data the one of the value.

    BadValue when it doesn't fit the operator, the field's type or its choices.
    """
    if operator.wants == "none":
        return None, field.type
    if raw is None:
        raise BadValue(_("A value is needed here; to ask for nothing use “is empty”."))
    value, type_ = _CONVERT[operator.wants](field, raw)
    if type_ == "text" and "tags" in operator.types and isinstance(value, frozenset):
        return value, "tags"  # a list inside an event's data is compared as tags are
    return value, type_


def _one(field: Field, raw: Any) -> tuple[Any, str]:
    type_ = _literal_type(raw) if field.type == "any" else field.type
    try:
        value = decode_strictly(raw, type_)
    except NotThisType:
        raise BadValue(_WRONG[type_]()) from None
    if isinstance(value, str):
        _check_text(field, value)
    return value, type_


def _check_text(field: Field, value: str) -> None:
    if is_blank(value):
        raise BadValue(_("A text is needed here; to ask for nothing use “is empty”."))
    if len(value) > MAX_TEXT:
        raise BadValue(_("A text has at most %(limit)s characters here.") % {"limit": MAX_TEXT})
    if field.type == "choice" and field.choices and value not in field.choice_values:
        known = ", ".join(code for code, _label in field.choices)
        message = _("“%(value)s” is not among the choices: %(choices)s.")
        raise BadValue(message % {"value": value, "choices": known})


def _list(field: Field, raw: Any) -> tuple[Any, str]:
    if not isinstance(raw, list) or not raw:
        raise BadValue(_("A list with at least one value is needed here."))
    if len(raw) > MAX_LIST:
        raise BadValue(_("A list has at most %(limit)s values here.") % {"limit": MAX_LIST})
    one = _item_field(field, raw[0])
    values = []
    for index, item in enumerate(raw):
        try:
            values.append(_one(one, item)[0])
        except BadValue as error:
            raise BadValue(str(error), (index,)) from None
    return frozenset(values), _LIST_TYPE.get(field.type, one.type)


def _item_field(field: Field, first: Any) -> Field:
    """The field as one of its items would be."""
    type_ = {"tags": "text", "references": "reference"}.get(field.type, field.type)
    if type_ == "any":
        type_ = _literal_type(first)
    return Field(path=field.path, type=type_, label_text=field.label_text, orm_path="", choices=field.choices)


def _pair(field: Field, raw: Any) -> tuple[Any, str]:
    if not isinstance(raw, dict) or raw.keys() != {"from", "to"}:
        raise BadValue(_("Two values are needed here: {“from”: …, “to”: …}."))
    values = []
    for key in ("from", "to"):
        try:
            value, type_ = _one(field, raw[key])
        except BadValue as error:
            raise BadValue(str(error), (key,)) from None
        values.append(value)
    return tuple(values), type_


def _span(field: Field, raw: Any) -> tuple[Any, str]:
    try:
        span = Span.parse(raw) if isinstance(raw, str) else None
    except ValueError:
        span = None
    if span is None:
        raise BadValue(_("A duration such as PT30M or P7D is needed here."))
    if field.type == "date" and span.seconds:
        raise BadValue(_("A date is compared in whole days, such as P7D."))
    return span, field.type


def _days(field: Field, raw: Any) -> tuple[Any, str]:
    span, type_ = _span(field, raw)
    if span.seconds:
        raise BadValue(_("Whole days are needed here, such as P1D."))
    return span, type_


def _time(field: Field, raw: Any) -> tuple[Any, str]:
    value = _moment(raw)
    if value is None or (field.type == "date" and isinstance(value, datetime)):
        wanted = _WRONG["date"] if field.type == "date" else _WRONG["datetime"]
        raise BadValue(wanted())
    return value, field.type


def _moment(raw: Any) -> date | datetime | None:
    """A date, or an instant with its offset, from its text; None when it is neither."""
    for type_ in ("date", "datetime"):
        try:
            moment: date | datetime = decode_strictly(raw, type_)
        except NotThisType:
            continue
        return moment
    return None


def _literal_type(raw: Any) -> str:
    if isinstance(raw, bool):
        return "boolean"
    if isinstance(raw, int | float):
        return "number"
    return "text"


_LIST_TYPE = {"tags": "tags", "references": "references"}
_CONVERT: dict[str, Callable[[Field, Any], tuple[Any, str]]] = {
    "one": _one,
    "list": _list,
    "pair": _pair,
    "span": _span,
    "days": _days,
    "time": _time,
}
_WRONG: dict[str, Callable[[], str]] = {
    "text": lambda: _("A text is needed here."),
    "choice": lambda: _("One of the field's choices is needed here."),
    "number": lambda: _("A number is needed here."),
    "boolean": lambda: _("True or false is needed here."),
    "date": lambda: _("A date such as 2026-05-01 is needed here."),
    "datetime": lambda: _("A date, or an instant with its offset such as 2026-05-01T12:00:00+02:00, is needed here."),
    "reference": lambda: _("The number of a record is needed here."),
}
