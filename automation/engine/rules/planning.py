"""Says what publishing a draft would do: to the rule, to runs under way, and which records it concerns already."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.catalog import registry
from automation.core.errors import DefinitionError, Problem
from automation.core.spec import RuleSpec
from automation.definitions.change_words import change_sentence
from automation.definitions.compile import compile_definition
from automation.definitions.diff import Change, diff
from automation.definitions.schema import parse
from automation.definitions.tree import parts
from automation.engine.documents import fingerprint
from automation.engine.references import References
from automation.engine.rules.existing import Existing, existing
from automation.engine.rules.finding import find
from automation.engine.rules.publishing import next_number
from automation.engine.rules.versions import VersionUse, in_use
from automation.models import Rule, RuleDraft
from tenants.context import current_tenant


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Runs that are on a version which would be an older one; `lost_steps` {path: runs} are at a step that is gone."""

    use: VersionUse
    lost_steps: dict[str, int]

    def sentences(self, waiting: str) -> list[str]:
        """What becomes of them: `waiting` is "keep" or "cancel"."""
        said = [self._where()] if self.use.runs else []
        if self.use.runs:
            said.append(self._future(waiting))
        if self.use.dead_letters:
            said.append(
                ngettext(
                    "%(n)d dead letter of version %(version)d is open: a retry goes on with that version.",
                    "%(n)d dead letters of version %(version)d are open: a retry goes on with that version.",
                    self.use.dead_letters,
                )
                % {"n": self.use.dead_letters, "version": self.use.number}
            )
        return said

    def _where(self) -> str:
        places = ", ".join(_("%(n)d at “%(step)s”") % {"n": count, "step": path} for path, count in self.use.at.items())
        said = ngettext(
            "%(n)d run of version %(version)d is under way (%(places)s).",
            "%(n)d runs of version %(version)d are under way (%(places)s).",
            self.use.runs,
        )
        return said % {"n": self.use.runs, "version": self.use.number, "places": places or _("not begun")}

    def _future(self, waiting: str) -> str:
        if waiting == "cancel":
            return _("They are cancelled: what they have not done yet isn't done.")
        if self.lost_steps:
            return _("They finish on version %(version)d, with steps that the new version doesn't have: %(steps)s.") % {
                "version": self.use.number,
                "steps": ", ".join(self.lost_steps),
            }
        return _("They finish on version %(version)d.") % {"version": self.use.number}


@dataclass(frozen=True, slots=True)
class Plan:
    """What publishing the draft of `revision` would do.

    `number` is the new version's, `live` the present one's. `changes` are all differences from it, `problems` what
    keeps the draft from being published. `under_way` are runs on versions that are then older ones; `again` is "keep"
    where such a run keeps new events of its record from starting the rule. `existing` is None where that is no
    question.
    """

    rule: Rule
    revision: int
    number: int
    live: int | None
    nothing_new: bool
    problems: list[Problem]
    changes: list[Change]
    under_way: list[UnderWay]
    again: str
    existing: Existing | None

    def sentences(self, waiting: str = "keep", *, existing_rate: float | None = None) -> list[str]:
        """All of it in words, for whoever decides, who may choose as `publish` lets them."""
        said = [change_sentence(change) for change in self.changes]
        for one in self.under_way:
            said += one.sentences(waiting)
        if self.again == "keep" and waiting == "keep" and any(one.use.runs for one in self.under_way):
            said.append(_("Until such a run has ended, new events of its record don't start the rule again."))
        return said + (self.existing.sentences(existing_rate) if self.existing else [])


def plan(rule_id: int) -> Plan:
    """What publishing the rule's draft would do now; reads only. `Rule.DoesNotExist` where there is no such rule."""
    rule = find(rule_id)
    draft = RuleDraft.objects.get(rule=rule)
    live = rule.published
    spec, problems = _read(draft.definition)
    return Plan(
        rule=rule,
        revision=draft.revision,
        number=next_number(rule),
        live=live.number if live else None,
        nothing_new=live is not None and _same(live.sha256, draft.definition),
        problems=problems,
        changes=diff(live.definition if live else None, draft.definition) if live else [],
        under_way=_under_way(rule.pk, draft.definition),
        again=spec.again if spec else "",
        existing=existing(spec) if spec else None,
    )


def _read(definition: dict[str, Any]) -> tuple[RuleSpec | None, list[Problem]]:
    try:
        return compile_definition(definition, registry, References(current_tenant())), []
    except DefinitionError as error:
        return None, error.problems


def _same(sha256: str, definition: dict[str, Any]) -> bool:
    try:
        return sha256 == fingerprint(parse(definition).to_json())
    except DefinitionError:
        return False


def _under_way(rule_id: int, definition: dict[str, Any]) -> list[UnderWay]:
    present = {part.value.get("id") for part in parts(definition) if part.kind == "step"}
    return [
        UnderWay(use, {path: count for path, count in use.at.items() if path.rpartition("/")[2] not in present})
        for use in in_use(rule_id)
    ]
