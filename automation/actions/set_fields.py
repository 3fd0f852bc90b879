"""Sets fields of the record: to a value, to what another field holds, to a date from now, or empty."""

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    Automatable,
    CheckContext,
    Effect,
    FieldRef,
    LocalContext,
    Outcome,
    PreviewContext,
    Span,
    Template,
    Unfit,
    Writing,
    add_span,
    fit,
    model,
    register,
    same,
)

Value = Template | bool | int | float | list[str] | None
DATES = ("date", "datetime")
EMPTY: tuple[Any, ...] = (None, "", [])
MOST = 20


class Change(ActionParams):
    """One field and what it becomes."""

    field: Annotated[str, FieldRef("change")] = Field(title=gettext_noop("Field"))
    how: Literal["value", "copy", "from_now", "empty"] = Field(default="value", title=gettext_noop("How"))
    value: Value = Field(default=None, title=gettext_noop("New value"), description=gettext_noop("May be a template."))
    copy_of: FieldRef | None = Field(default=None, title=gettext_noop("Copy of"))
    span: str | None = Field(
        default=None,
        max_length=80,
        title=gettext_noop("Time from now"),
        description=gettext_noop("A duration such as P3D; days and months by the tenant's calendar."),
    )
    only_if_still: Value = Field(
        default=None,
        title=gettext_noop("Only if it is still"),
        description=gettext_noop("Nothing is written when the field holds something else by then; “” means empty."),
    )


@register
class SetFields(Action):
    """Only the named columns are written; with `only_if_still`, all of them or none."""

    kind, version, label = "set_fields", 1, gettext_lazy("Set fields")
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """The changes, in their order."""

        fields: list[Change] = Field(min_length=1, max_length=MOST, title=gettext_noop("Fields"))

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Writes what differs; says "no change" where nothing does."""
        entry = model(context.model)
        for change in params.fields:
            if change.only_if_still is not None and not _holds(entry, change, context):
                return Outcome.skipped("not_matched", _("“%(field)s” has changed since.") % {"field": change.field})
        try:
            values = {change.field: _value(entry, change, context) for change in params.fields}
        except Unfit as error:
            return Outcome.rejected(str(error))
        changed = context.change(**values)
        return Outcome.done({"changed": changed}, note="" if changed else _("no change"))

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """Each field with what it holds and what it becomes."""
        return {
            change.field: {"now": context.current(change.field), "becomes": _shown(change)} for change in params.fields
        }

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """Values that fit, dates for spans, copies between fields of one type, no field twice."""
        if context.automatable is None:
            return []
        problems: list[tuple[str, str]] = []
        seen: set[str] = set()
        for index, change in enumerate(params.fields):
            problem = _problem(context.automatable, change)
            if change.field in seen:
                problem = ("field", _("This field is set twice."))
            seen.add(change.field)
            if problem is not None:
                problems.append((f"/fields/{index}/{problem[0]}", problem[1]))
        return problems

    def writes(self, params: Params) -> frozenset[str]:
        """The named fields."""
        return frozenset(change.field for change in params.fields)

    def writings(self, params: Params) -> tuple[Writing, ...]:
        """Plain values and emptied fields are known; templates, copies and times aren't."""
        return tuple(
            Writing(change.field, _plain_value(change), at=f"/fields/{index}/value")
            for index, change in enumerate(params.fields)
        )

    def sentence(self, params: Params) -> str:
        """Reads like “set status to open, due on to P3D from now”."""
        return _("set %(changes)s") % {"changes": ", ".join(map(_words, params.fields))}


def _plain_value(change: Change) -> tuple[Any, ...] | None:
    if change.how == "empty":
        return (None,)
    is_template = isinstance(change.value, str) and "{" in change.value
    return (change.value,) if change.how == "value" and not is_template else None


def _holds(entry: Automatable, change: Change, context: LocalContext) -> bool:
    """Whether the field still holds what it should; an empty text asks for an empty field."""
    current = context.current(change.field)
    if change.only_if_still in EMPTY:
        return current in EMPTY
    try:
        wanted = fit(entry, change.field, change.only_if_still, zone=context.zone)
    except Unfit:
        return False
    return same(current, wanted, entry.fields[change.field].type)


def _value(entry: Automatable, change: Change, context: LocalContext) -> Any:
    if change.how == "from_now":
        moment = add_span(context.now, Span.parse(change.span or ""), context.zone)
        if entry.fields[change.field].type == "date":
            return moment.astimezone(context.zone).date()
        return moment
    wanted = {"value": change.value, "copy": context.current(change.copy_of or ""), "empty": None}[change.how]
    return fit(entry, change.field, wanted, zone=context.zone)


def _problem(entry: Automatable, change: Change) -> tuple[str, str] | None:
    field = entry.fields.get(change.field)
    if field is None:
        return None  # said by the compiler
    if change.how == "from_now":
        return _span_problem(field.type, change.span)
    if change.how == "copy":
        source = entry.fields.get(change.copy_of or "")
        if source is None:
            return "copy_of", _("Choose the field to copy.")
        compatible = (source.type == field.type and source.target == field.target) or field.type == "text"
        return None if compatible else ("copy_of", _("The two fields are of different kinds."))
    value = change.value if change.how == "value" else None
    if isinstance(value, str) and "{" in value:
        return None
    try:
        fit(entry, change.field, value, zone=ZoneInfo("UTC"))
    except Unfit as error:
        return ("value" if change.how == "value" else "how"), str(error)
    return None


def _span_problem(type_: str, span: str | None) -> tuple[str, str] | None:
    if type_ not in DATES:
        return "how", _("Only a date or a moment can be set to a time from now.")
    try:
        Span.parse(span or "")
    except ValueError:
        return "span", _("This is not a duration such as P3D or PT2H.")
    return None


def _shown(change: Change) -> Any:
    return {"value": change.value, "copy": {"copy_of": change.copy_of}, "from_now": {"in": change.span}, "empty": None}[
        change.how
    ]


def _words(change: Change) -> str:
    names = {"field": change.field, "value": change.value, "other": change.copy_of, "span": change.span}
    if change.how == "copy":
        return _("%(field)s to the value of %(other)s") % names
    if change.how == "from_now":
        return _("%(field)s to %(span)s from now") % names
    if change.how == "empty" or change.value in EMPTY:
        return _("%(field)s to empty") % names
    return _("%(field)s to “%(value)s”") % names
