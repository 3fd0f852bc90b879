"""Conditions in plain words: one whole message for each operator."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.catalog.automatable import Automatable, Field
from automation.core.calendars import Span
from automation.core.facts import EVENT_PREFIX
from automation.definitions.schema import AllPart, AnyPart, ConditionPart, LeafPart

NameOf = Callable[[str, int], str | None]
"""(model, id) → what people call that record, None when it isn't known."""

_PHRASES: dict[str, Callable[[], str]] = {
    "is": lambda: _("%(field)s is %(value)s"),
    "is_not": lambda: _("%(field)s is not %(value)s"),
    "is_exactly": lambda: _("%(field)s is exactly %(value)s"),
    "in": lambda: _("%(field)s is one of %(value)s"),
    "not_in": lambda: _("%(field)s is none of %(value)s"),
    "contains": lambda: _("%(field)s contains %(value)s"),
    "not_contains": lambda: _("%(field)s does not contain %(value)s"),
    "starts_with": lambda: _("%(field)s starts with %(value)s"),
    "gt": lambda: _("%(field)s is greater than %(value)s"),
    "gte": lambda: _("%(field)s is at least %(value)s"),
    "lt": lambda: _("%(field)s is less than %(value)s"),
    "lte": lambda: _("%(field)s is at most %(value)s"),
    "is_empty": lambda: _("%(field)s is empty"),
    "is_not_empty": lambda: _("%(field)s is not empty"),
    "has_any": lambda: _("%(field)s include any of %(value)s"),
    "has_all": lambda: _("%(field)s include all of %(value)s"),
    "has_none": lambda: _("%(field)s include none of %(value)s"),
    "is_exactly_set": lambda: _("%(field)s are exactly %(value)s"),
    "changed": lambda: _("%(field)s changes"),
    "changed_to": lambda: _("%(field)s becomes %(value)s"),
    "changed_from": lambda: _("%(field)s is no longer %(value)s"),
    "changed_from_to": lambda: _("%(field)s goes from %(old)s to %(value)s"),
    "was": lambda: _("%(field)s was %(value)s before"),
    "rises_above": lambda: _("%(field)s rises above %(value)s"),
    "falls_below": lambda: _("%(field)s falls below %(value)s"),
    "before": lambda: _("%(field)s is before %(value)s"),
    "after": lambda: _("%(field)s is after %(value)s"),
    "is_today": lambda: _("%(field)s is today"),
    "older_than": lambda: _("%(field)s is more than %(value)s ago"),
    "within_last": lambda: _("%(field)s is within the last %(value)s"),
    "within_next": lambda: _("%(field)s is within the next %(value)s"),
    "is_ago": lambda: _("%(field)s is %(value)s ago"),
    "is_ahead": lambda: _("%(field)s is %(value)s ahead"),
}
_SPANS = frozenset({"older_than", "within_last", "within_next", "is_ago", "is_ahead"})


def condition_words(
    part: ConditionPart, automatable: Automatable | None, name_of: NameOf, *, inner: bool = False
) -> str:
    """A condition as a clause; `inner` ones of several parts stand in brackets."""
    if isinstance(part, LeafPart):
        return _leaf_words(part, automatable, name_of)
    items = part.all if isinstance(part, AllPart) else part.any if isinstance(part, AnyPart) else part.none
    words = [condition_words(item, automatable, name_of, inner=len(items) > 1) for item in items]
    if not words:
        return _("never")
    if not isinstance(part, AllPart | AnyPart):
        return _("none of these holds: %(conditions)s") % {"conditions": ", ".join(words)}
    joined = _joined(words, _("%(one)s and %(other)s") if isinstance(part, AllPart) else _("%(one)s or %(other)s"))
    return _("(%(condition)s)") % {"condition": joined} if inner and len(words) > 1 else joined


def duration_words(span: Span) -> str:
    """A duration in words: "2 hours"."""
    hours, rest = divmod(span.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [
        ngettext("%(count)s month", "%(count)s months", span.months) % {"count": span.months} if span.months else "",
        ngettext("%(count)s day", "%(count)s days", span.days) % {"count": span.days} if span.days else "",
        ngettext("%(count)s hour", "%(count)s hours", hours) % {"count": hours} if hours else "",
        ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes} if minutes else "",
        ngettext("%(count)s second", "%(count)s seconds", seconds) % {"count": seconds} if seconds else "",
    ]
    return " ".join(part for part in parts if part) or _("no time")


def _leaf_words(part: LeafPart, automatable: Automatable | None, name_of: NameOf) -> str:
    fields: Mapping[str, Field] = automatable.fields if automatable is not None else {}
    field = fields.get(part.field)
    phrase = _PHRASES.get(part.op, lambda: _("%(field)s %(op)s %(value)s"))()
    places = {"field": _field_label(part.field, field), "op": part.op, "old": "", "value": ""}
    if part.value_of is not None:
        return phrase % (places | {"value": _field_label(part.value_of, fields.get(part.value_of))})
    if part.op in _SPANS and isinstance(part.value, str):
        return phrase % (places | {"value": _span_words(part.value)})
    if part.op == "changed_from_to" and isinstance(part.value, dict):
        old, new = (_value_words(part.value.get(key), field, name_of) for key in ("from", "to"))
        return phrase % (places | {"old": old, "value": new})
    return phrase % (places | {"value": _value_words(part.value, field, name_of)})


def _field_label(path: str, field: Field | None) -> str:
    if path.startswith(EVENT_PREFIX):
        return _("the event's “%(name)s”") % {"name": path.removeprefix(EVENT_PREFIX)}
    return path if field is None else field.label[:1].lower() + field.label[1:]


def _value_words(value: Any, field: Field | None, name_of: NameOf) -> str:
    if isinstance(value, list):
        return ", ".join(_value_words(item, field, name_of) for item in value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if field is not None and field.type == "choice":
        labels = {code: str(label) for code, label in field.choices}
        return labels[value].lower() if value in labels else str(value)
    if field is not None and field.type in ("reference", "references") and isinstance(value, int):
        return name_of(field.target, value) or f"#{value}"
    if isinstance(value, str) and (field is None or field.type not in ("date", "datetime", "tags")):
        return _("“%(text)s”") % {"text": value}
    return str(value)


def _span_words(text: str) -> str:
    try:
        return duration_words(Span.parse(text))
    except ValueError:
        return text


def _joined(words: list[str], message: str) -> str:
    joined = words[0]
    for word in words[1:]:
        joined = message % {"one": joined, "other": word}
    return joined
