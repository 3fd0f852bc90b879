"""How rules stood at a moment: made or not, deleted, on or off, and at which version, read back from the audit."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from automation.models import Rule, RuleVersion
from tenants.models import AuditEntry

DOUBT = timedelta(minutes=1)
"""How long before an event was matched its matcher may have read the rules, and a verb's audit entry may have begun."""


@dataclass(frozen=True, slots=True)
class Change:
    """A moment at which a rule was switched, published or deleted: by whom ("" for the engine itself), and why."""

    at: datetime
    verb: str
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class RuleState:
    """How a rule stood from `since` on; `changed` is what brought it there, None where the audit doesn't say.

    `unaudited`: it stands otherwise than the audit left it, so that somebody has switched it past the product, at some
    moment since then.
    """

    made: bool
    deleted: bool
    on: bool
    version: RuleVersion | None
    since: datetime | None = None
    changed: Change | None = None
    unaudited: bool = False

    @property
    def ran(self) -> bool:
        """Whether its events were judged."""
        return self.made and self.on and not self.deleted and self.version is not None


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """The states of one rule, newest first; the last one reaches back to when it was made."""

    rule: Rule
    states: tuple[RuleState, ...]

    def at(self, moment: datetime) -> RuleState:
        """The state at a moment."""
        return self.around(moment, timedelta(0))[0]

    def around(self, moment: datetime, doubt: timedelta | None = None) -> list[RuleState]:
        """The state at a moment, then those that it followed within the time of doubt before it (`DOUBT`)."""
        doubt, found = DOUBT if doubt is None else doubt, list[RuleState]()
        for state in self.states:
            begins = state.since
            if begins is not None and begins > moment:
                continue
            found.append(state)
            if begins is None or begins <= moment - doubt:
                break
        return found


def histories(rules: Iterable[Rule]) -> dict[int, RuleHistory]:
    """The histories of rules of the current tenant, by id; two statements. Versions come without their definitions."""
    found = {rule.pk: rule for rule in rules}
    versions: dict[int, dict[int, RuleVersion]] = defaultdict(dict)
    for version in RuleVersion.objects.filter(rule__in=found).defer("definition").order_by("number"):
        versions[version.rule_id][version.number] = version
    entries: dict[str, list[AuditEntry]] = defaultdict(list)
    for entry in AuditEntry.objects.filter(target__in=[f"rule:{one}" for one in found]).order_by("-id"):
        entries[entry.target].append(entry)
    return {key: RuleHistory(rule, _states(rule, versions[key], entries[f"rule:{key}"])) for key, rule in found.items()}


def _states(rule: Rule, versions: Mapping[int, RuleVersion], entries: Iterable[AuditEntry]) -> tuple[RuleState, ...]:
    """From what is, back through what was done: rows that nobody audited keep the state that they have."""
    live = next((one for one in versions.values() if one.pk == rule.published_id), None)
    state = RuleState(made=True, deleted=rule.deleted_at is not None, on=rule.on, version=live)
    found: list[RuleState] = []
    for entry in entries:
        before = _before(state, entry, versions)
        if before is None:
            continue
        known = _is_as_left(state, entry)
        change = Change(entry.at, entry.verb, entry.actor_name, entry.reason) if known else None
        found.append(replace(state, since=entry.at, changed=change, unaudited=not known))
        state = before
    if not found or found[-1].since is None or found[-1].since > rule.created_at:
        found.append(replace(state, since=rule.created_at))
    found.append(RuleState(made=False, deleted=False, on=False, version=None))
    return tuple(found)


def _before(state: RuleState, entry: AuditEntry, versions: Mapping[int, RuleVersion]) -> RuleState | None:
    """How the rule stood before what an entry tells of; None where it tells of something else."""
    before: Mapping[str, Any] = entry.before if isinstance(entry.before, dict) else {}
    after: Mapping[str, Any] = entry.after if isinstance(entry.after, dict) else {}
    if entry.verb == "publish":
        return replace(state, version=versions.get(before.get("version") or 0))
    if entry.verb == "delete":
        return replace(state, deleted=False, on=bool(before.get("on")))
    if entry.verb == "undelete":
        return replace(state, deleted=True)
    if "on" in before and "on" in after:
        return replace(state, on=bool(before["on"]))
    return None


def _is_as_left(state: RuleState, entry: AuditEntry) -> bool:
    """Whether a state that an entry brought about is what the entry says."""
    after: Mapping[str, Any] = entry.after if isinstance(entry.after, dict) else {}
    if entry.verb in ("delete", "undelete"):
        return state.deleted == (entry.verb == "delete")
    return "on" not in after or state.on == bool(after["on"])
