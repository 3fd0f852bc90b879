"""A watched record was created, updated or deleted."""

from functools import reduce
from typing import Annotated, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import Field

from automation.extend import Automatable, Trigger, TriggerParams, TriggerSpec, register

Source = Literal["person", "api", "automation"]
_SOURCES: tuple[Source, ...] = ("person", "api", "automation")


@register
class RecordChanged(Trigger):
    """Starts a rule for a change that somebody, the API or another rule made."""

    kind, label = "record_changed", gettext_lazy("A record is created, updated or deleted")

    class Params(TriggerParams):
        """The model, the kinds of change, the fields of which one must have changed, and who may have made it."""

        model: str
        on: Annotated[list[Literal["created", "updated", "deleted"]], Field(min_length=1, max_length=3)]
        fields: Annotated[list[str], Field(max_length=100)] = Field(default_factory=list)
        sources: Annotated[list[Source], Field(min_length=1, max_length=3)] = Field(
            default_factory=lambda: list(_SOURCES)
        )

    def spec(self, params: Params) -> TriggerSpec:
        """What the rule listens to."""
        return TriggerSpec(
            kind=self.kind,
            model=params.model,
            on=frozenset(params.on),
            fields=frozenset(params.fields),
            sources=frozenset(params.sources),
        )

    def check(self, params: Params, automatable: Automatable) -> list[tuple[str, str]]:
        """A field that isn't watched raises no event, and the model may have none at all."""
        problems = []
        if not automatable.watched:
            problems.append(("/model", _("Changes of a %(model)s are no events.") % {"model": automatable.label}))
        for index, path in enumerate(params.fields):
            if path not in automatable.watched:
                names = {"field": path[:80], "model": automatable.label}
                message = _("A change of “%(field)s” is no event of a %(model)s.") % names
                problems.append((f"/fields/{index}", message))
        if params.fields and "updated" not in params.on:
            problems.append(("/fields", _("Fields only matter for a record that is updated.")))
        return problems

    def sentence(self, params: Params, automatable: Automatable) -> str:
        """Which changes of what: "When a ticket is created or updated"."""
        labels = [_label(path, automatable) for path in params.fields]
        names = {"model": automatable.label, "fields": reduce(_either, labels) if labels else ""}
        chosen = tuple(kind for kind in ("created", "updated", "deleted") if kind in params.on)
        return _sentences(with_fields=bool(labels))[chosen] % names


def _label(path: str, automatable: Automatable) -> str:
    field = automatable.fields.get(path)
    return path if field is None else field.label[:1].lower() + field.label[1:]


def _either(one: str, other: str) -> str:
    return _("%(one)s or %(other)s") % {"one": one, "other": other}


def _sentences(*, with_fields: bool) -> dict[tuple[str, ...], str]:
    """A whole message for each choice of kinds; the fields are those of which one must have changed."""
    sentences = {
        ("created",): _("When a %(model)s is created"),
        ("updated",): _("When a %(model)s is updated"),
        ("deleted",): _("When a %(model)s is deleted"),
        ("created", "updated"): _("When a %(model)s is created or updated"),
        ("created", "deleted"): _("When a %(model)s is created or deleted"),
        ("updated", "deleted"): _("When a %(model)s is updated or deleted"),
        ("created", "updated", "deleted"): _("When a %(model)s is created, updated or deleted"),
    }
    if not with_fields:
        return sentences
    return sentences | {
        ("updated",): _("When %(fields)s of a %(model)s changes"),
        ("created", "updated"): _("When a %(model)s is created or its %(fields)s changes"),
        ("updated", "deleted"): _("When a %(model)s is deleted or its %(fields)s changes"),
        ("created", "updated", "deleted"): _("When a %(model)s is created or deleted, or its %(fields)s changes"),
    }
