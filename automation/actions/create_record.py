"""Creates another record: a task, a ticket, or any record that rules know."""

from typing import Any
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
    LocalContext,
    Outcome,
    Template,
    Unfit,
    Writing,
    fit,
    is_settable,
    model,
    register,
    required,
)

Value = Template | bool | int | float | list[str] | None
UTC = ZoneInfo("UTC")


@register
class CreateRecord(Action):
    """The new record's event carries this run as its cause."""

    kind, version, label = "create_record", 1, gettext_lazy("Create a record")
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """The model and the values; `link` names the field of the new record that points to this one."""

        model: str = Field(max_length=80, title=gettext_noop("Kind of record"), json_schema_extra={"widget": "model"})
        values: dict[str, Value] = Field(
            default_factory=dict, max_length=40, title=gettext_noop("Fields"), json_schema_extra={"widget": "values"}
        )
        link: str | None = Field(default=None, title=gettext_noop("Field that points to this record"))

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Writes the record; values that don't fit are refused with the field's name."""
        entry = _entry(params.model)
        if entry is None:
            return Outcome.rejected(_("There is no such kind of record any more."), reason="broken_reference")
        try:
            values = {path: fit(entry, path, value, zone=context.zone) for path, value in params.values.items()}
        except Unfit as error:
            return Outcome.rejected(str(error))
        if params.link is not None:
            values[params.link] = context.record_id
        return Outcome.done({"model": params.model, "id": context.create(params.model, **values)})

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """A model that rules know, fields that it has, and every field that it needs."""
        entry = context.models.get(params.model)
        if entry is None:
            return [("/model", _("Rules can't create “%(model)s”.") % {"model": params.model})]
        problems = [(f"/values/{_escaped(path)}", text) for path, text in _wrong_values(entry, params.values, context)]
        missing = required(entry) - params.values.keys() - {params.link}
        for path in sorted(missing):
            problems.append(("/values", _("The field “%(field)s” is needed.") % {"field": path}))
        if params.link is not None and not _links(entry, params.link, context.model):
            problems.append(("/link", _("“%(field)s” doesn't point to this kind of record.") % {"field": params.link}))
        return problems

    def creates(self, params: Params) -> tuple[str, tuple[Writing, ...]]:
        """The new record with its plain values."""
        plain = [
            Writing(path, None if isinstance(value, str) and "{" in value else (value,), at=f"/values/{_escaped(path)}")
            for path, value in params.values.items()
        ]
        return params.model, (*plain, *([Writing(params.link)] if params.link is not None else []))

    def sentence(self, params: Params) -> str:
        """Reads like “create a task”."""
        entry = _entry(params.model)
        return _("create a %(model)s") % {"model": entry.label if entry else params.model}


def _entry(name: str) -> Automatable | None:
    try:
        return model(name)
    except LookupError:
        return None


def _wrong_values(entry: Automatable, values: dict[str, Any], context: CheckContext) -> list[tuple[str, str]]:
    wrong: list[tuple[str, str]] = []
    for path, value in values.items():
        if not is_settable(entry, path):
            wrong.append((path, _("A %(model)s has no field “%(field)s”.") % {"model": entry.label, "field": path}))
        elif not (isinstance(value, str) and "{" in value):
            try:
                fit(entry, path, value, zone=UTC)
            except Unfit as error:
                wrong.append((path, str(error)))
    return wrong


def _links(entry: Automatable, path: str, target: str) -> bool:
    field = entry.fields.get(path)
    return field is not None and field.type == "reference" and field.target == target and is_settable(entry, path)


def _escaped(path: str) -> str:
    return path.replace("~", "~0").replace("/", "~1")
