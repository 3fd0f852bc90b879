"""Adds a note to the record."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    CheckContext,
    Effect,
    LocalContext,
    Outcome,
    Template,
    Writing,
    register,
)


@register
class AddNote(Action):
    """The note stands where the host keeps the record's notes, as plain text."""

    kind, version, label = "add_note", 1, gettext_lazy("Add a note")
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """The text."""

        text: Template = Field(max_length=20_000, title=gettext_noop("Text"), json_schema_extra={"widget": "textarea"})

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Writes the note; a text that came out empty writes none."""
        if not params.text.strip():
            return Outcome.done(note=_("The text was empty; nothing was noted."))
        return Outcome.done({"note": context.add_note(params.text)})

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """Records that have a place for notes."""
        if not params.text.strip():
            return [("/text", _("Enter a text."))]
        if context.automatable is not None and context.automatable.note is None:
            return [("/text", _("These records have no place for notes."))]
        return []

    def writes(self, params: Params) -> frozenset[str]:
        """What counts the notes; both names of the host are covered."""
        return frozenset({"comments", "notes"})

    def writings(self, params: Params) -> tuple[Writing, ...]:
        """One note more: those that are there stay."""
        return tuple(Writing(name, part="added") for name in sorted(self.writes(params)))

    def sentence(self, params: Params) -> str:
        """Reads like “add the note Call back”."""
        return _("add the note “%(text)s”") % {"text": params.text}
