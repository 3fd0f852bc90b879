"""Assigns the record: to a person, to a group, or by turns to the members who are there."""

from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    CheckContext,
    Effect,
    GroupRef,
    LocalContext,
    MemberRef,
    Outcome,
    PreviewContext,
    Writing,
    register,
)


@register
class Assign(Action):
    """By turns: whoever has the fewest open records, then whoever was assigned one longest ago."""

    kind, version, label = "assign", 1, gettext_lazy("Assign")
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """Who gets it. `group` is the group itself for `group`, and the members to choose from for `round_robin`."""

        to: Literal["person", "group", "round_robin"] = Field(title=gettext_noop("To"))
        person: MemberRef | None = Field(default=None, title=gettext_noop("Person"))
        group: GroupRef | None = Field(
            default=None,
            title=gettext_noop("Group"),
            description=gettext_noop("By turns: only its members are chosen; without one, all members are."),
        )
        only_if_unassigned: bool = Field(default=False, title=gettext_noop("Only if nobody has it"))

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Writes the assignee or the group; says so where nobody can be found."""
        field = "group" if params.to == "group" else "assignee"
        if params.only_if_unassigned and context.current(field) is not None:
            return Outcome.skipped("not_matched", _("It is assigned already."))
        chosen = self._chosen(params, context)
        if chosen is None:
            return Outcome.rejected(_("Nobody is there to take it."), reason="no_assignee")
        changed = context.change(**{field: chosen})
        return Outcome.done({field: chosen}, note="" if changed else _("no change"))

    def _chosen(self, params: Params, context: LocalContext) -> int | None:
        if params.to == "person":
            return params.person
        if params.to == "group":
            return context.group_id(params.group or "")
        return context.pick_member(params.group)

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """Who has it now, and how it will be given on."""
        field = "group" if params.to == "group" else "assignee"
        return {"now": context.current(field), "to": params.to, "person": params.person, "group": params.group}

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """The field to write, and whom to choose."""
        field = "group" if params.to == "group" else "assignee"
        known = context.automatable.fields.get(field) if context.automatable else None
        if context.automatable is not None and (known is None or not known.change):
            return [("/to", _("These records can't be assigned like that."))]
        if params.to == "person" and params.person is None:
            return [("/person", _("Choose a person."))]
        if params.to == "group" and params.group is None:
            return [("/group", _("Choose a group."))]
        return []

    def writes(self, params: Params) -> frozenset[str]:
        """The assignee or the group."""
        return frozenset({"group" if params.to == "group" else "assignee"})

    def writings(self, params: Params) -> tuple[Writing, ...]:
        """A named person is known; a group's number and whose turn it is aren't."""
        known = (params.person,) if params.to == "person" else None
        return tuple(Writing(name, known) for name in self.writes(params))

    def sentence(self, params: Params) -> str:
        """Reads like “assign it by turns to the group Sales”."""
        if params.to == "person":
            return _("assign it to member %(person)s") % {"person": params.person}
        if params.to == "group":
            return _("assign it to the group “%(group)s”") % {"group": params.group}
        if params.group:
            return _("assign it by turns in the group “%(group)s”") % {"group": params.group}
        return _("assign it by turns")
