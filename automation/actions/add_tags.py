"""Adds tags to the record and leaves its others alone."""

import unicodedata
from collections.abc import Iterable
from typing import Any

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
    PreviewContext,
    TagList,
    Writing,
    register,
)

FIELD = "tags"
LONGEST = 40


@register
class AddTags(Action):
    """A difference, computed under the record's lock: two rules that tag at once lose nothing."""

    kind, version, label = "add_tags", 1, gettext_lazy("Add tags")
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """The tags."""

        tags: TagList = Field(min_length=1, max_length=20, title=gettext_noop("Tags"))

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Writes the new set; says "no change" where it is the old one."""
        have = list(context.current(FIELD) or ())
        wanted = sorted({*have, *_plain(params.tags)})
        if wanted == sorted(have):
            return Outcome.done(note=_("no change"))
        context.change(tags=wanted)
        return Outcome.done({"added": sorted(set(wanted) - set(have))})

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """The tags before and after."""
        have = list(context.current(FIELD) or ())
        return {"now": have, "becomes": sorted({*have, *_plain(params.tags)})}

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """Records that have tags, and tags that can be stored."""
        field = context.automatable.fields.get(FIELD) if context.automatable else None
        if context.automatable is not None and (field is None or field.type != "tags" or not field.change):
            return [("/tags", _("These records have no tags that rules may change."))]
        wrong = [index for index, tag in enumerate(params.tags) if not 0 < len(" ".join(tag.split())) <= LONGEST]
        return [(f"/tags/{index}", _("A tag has 1 to 40 characters.")) for index in wrong]

    def writes(self, params: Params) -> frozenset[str]:
        """The tags."""
        return frozenset({FIELD})

    def writings(self, params: Params) -> tuple[Writing, ...]:
        """Which tags are there afterwards, or aren't; templates aren't known."""
        return (Writing(FIELD, holds=frozenset(_plain(tag for tag in params.tags if "{" not in tag)), part="added"),)

    def sentence(self, params: Params) -> str:
        """Reads like “add the tags vip, late”."""
        return _("add the tags %(tags)s") % {"tags": ", ".join(params.tags)}


def _plain(tags: Iterable[str]) -> list[str]:
    """The tags as records hold them: composed, without outer and doubled white space."""
    return [" ".join(unicodedata.normalize("NFC", tag).split()) for tag in tags]
