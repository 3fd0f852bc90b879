"""Says where rules use a connection, member, group or field: live, switched off, in a draft, or in runs under way."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.catalog import registry
from automation.catalog.action import Action
from automation.catalog.automatable import Automatable
from automation.catalog.trigger import Trigger
from automation.core.errors import Problem
from automation.definitions.scope import ANY_KIND, MEMBERS
from automation.definitions.tree import parts
from automation.engine.references import problems_of
from automation.engine.rules.versions import in_use
from automation.models import Rule, RuleVersion


@dataclass(frozen=True, slots=True)
class Gone:
    """What a tenant would be without: connections and groups by name, members by id, fields as "crm.lead.source".

    Stands for the tenant's references and for the catalog at once: all that isn't named here is there.
    """

    connections: Collection[str] = ()
    members: Collection[int] = ()
    groups: Collection[str] = ()
    fields: Collection[str] = ()

    def connection(self, name: str) -> str | None:
        """Of a kind that passes for any; None for one that is gone."""
        return None if name in self.connections else ANY_KIND

    def member(self, member_id: int) -> bool:
        """Whether the member stays."""
        return member_id not in self.members

    def group(self, name: str) -> bool:
        """Whether the group stays."""
        return name not in self.groups

    def record(self, target: str, record_id: int) -> bool:
        """Whether the record stays: of members only some may go."""
        return target != MEMBERS or record_id not in self.members

    @property
    def actions(self) -> Mapping[str, Action]:
        """All."""
        return registry.actions

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """All."""
        return registry.triggers

    @property
    def models(self) -> Mapping[str, Automatable]:
        """All, without the fields that are gone."""
        if not self.fields:
            return registry.models
        return {
            name: replace(
                entry, fields={path: one for path, one in entry.fields.items() if f"{name}.{path}" not in self.fields}
            )
            for name, entry in registry.models.items()
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """A rule that uses something: its live version ("live", "off" where the rule is off), its "draft", or "older" ones.

    `runs` are under way on an older `version`. `steps` are the ids of the steps that use it, "" for what isn't a step.
    """

    rule: Rule
    what: str
    version: int | None
    steps: tuple[str, ...]
    runs: int = 0

    def sentence(self) -> str:
        """What becomes of it, for whoever is about to delete."""
        places = {"rule": self.rule.name, "version": self.version, "runs": self.runs}
        if self.what == "live":
            return _("The rule “%(rule)s” uses it and will be switched off.") % places
        if self.what == "off":
            return _("The rule “%(rule)s” uses it; it is off, and can't be switched on without.") % places
        if self.what == "draft":
            return _("The draft of “%(rule)s” uses it, and can't be published without.") % places
        said = ngettext(
            "%(runs)d run on version %(version)d of “%(rule)s” uses it and will fail there.",
            "%(runs)d runs on version %(version)d of “%(rule)s” use it and will fail there.",
            self.runs,
        )
        return said % places


def usages(gone: Gone) -> list[Usage]:
    """Where the current tenant's rules use what would be gone, in their order: live or off first, then draft, older."""
    rules = Rule.objects.filter(deleted_at=None).select_related("published", "draft").order_by("position", "id")
    older = _older()
    return [usage for rule in rules for usage in _of_rule(rule, older.get(rule.pk, []), gone)]


def _of_rule(rule: Rule, older: list[tuple[RuleVersion, int]], gone: Gone) -> Iterator[Usage]:
    live = rule.published
    if live is not None and (found := _steps_that_lose(live.definition, gone)) is not None:
        yield Usage(rule, "live" if rule.on else "off", live.number, found)
    draft = rule.draft.definition
    if (live is None or draft != live.definition) and (found := _steps_that_lose(draft, gone)) is not None:
        yield Usage(rule, "draft", None, found)
    for version, runs in older:
        if (found := _steps_that_lose(version.definition, gone)) is not None:
            yield Usage(rule, "older", version.number, found, runs)


def _older() -> dict[int, list[tuple[RuleVersion, int]]]:
    runs = {use.version_id: use.runs for use in in_use() if not use.live and use.runs}
    found: dict[int, list[tuple[RuleVersion, int]]] = {}
    for version in RuleVersion.objects.filter(pk__in=runs).order_by("number"):
        found.setdefault(version.rule_id, []).append((version, runs[version.pk]))
    return found


def _steps_that_lose(definition: Any, gone: Gone) -> tuple[str, ...] | None:
    """The ids of the steps that have a problem without it and none with it; None where nothing has."""
    without = _problems(definition, gone)
    if not without:
        return None
    lost = set(without) - set(_problems(definition, Gone()))
    return _steps(definition, lost) if lost else None


def _problems(definition: Any, gone: Gone) -> list[Problem]:
    return problems_of(definition, gone, catalog=gone, published=True)


def _steps(definition: Any, problems: Collection[Problem]) -> tuple[str, ...]:
    steps = [(part.pointer, str(part.value.get("id", ""))) for part in parts(definition) if part.kind == "step"]
    around = ([step for step in steps if f"{problem.pointer}/".startswith(f"{step[0]}/")] for problem in problems)
    return tuple(sorted({max(found, default=("", ""), key=lambda step: len(step[0]))[1] for found in around}))
