"""Judges stored events by two versions of a rule and keeps what differs, in a constant amount of memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from automation.catalog import registry
from automation.core.conditions import LeafReport
from automation.core.erased import judge_stored
from automation.core.foresight import foresee
from automation.core.moments import Moment
from automation.core.spec import RuleSpec
from automation.engine import capture, ruleset
from automation.engine.match import judge, listens
from automation.engine.ruleset import Compiled, TenantRules
from automation.models import Rule, RuleVersion
from automation.store import events as event_rows
from automation.store.events import EventRow

Verdict = Literal["true", "false", "unknown"]
KINDS = ("new", "lost", "undecidable", "both")
SAMPLES = 100  # of each kind; further ones are only counted, and of none is kept what its event said


def nothing_yet() -> dict[str, Any]:
    """The result before the first event."""
    return {
        "counts": dict.fromkeys(("live", "draft", "both", "new", "lost", "undecidable", "approximate"), 0),
        "samples": {kind: [] for kind in KINDS},
        "estimates": {"runs": 0, "steps": 0, "sends": {}, "actions": {}},
        "today": {},
    }


def versions(
    tenant_id: int, rule: Rule, definition: Any, against_id: int | None
) -> tuple[TenantRules, TenantRules | None]:
    """The tenant with only the definition as its rule, and with only the version that it is compared with."""
    tenant = ruleset.of_tenant(tenant_id, event_rows.flags([tenant_id])[tenant_id][2])
    draft = RuleVersion(pk=0, rule=rule, number=0, definition=definition)
    live = RuleVersion.objects.filter(pk=against_id).first() if against_id else None
    only_live = tenant.with_only(ruleset.compile_version(live, rule), {}) if live is not None else None
    return tenant.with_only(ruleset.compile_version(draft, rule), {}), only_live


@dataclass(slots=True)
class Judging:
    """Judges batch by batch into `result`, as `nothing_yet` describes it.

    `draft` and `live` are the tenant with only that version as its rule; `live` None where nothing was published.
    """

    draft: TenantRules
    live: TenantRules | None
    result: dict[str, Any]

    def take(self, events: Sequence[EventRow]) -> None:
        """Judges the events and counts what came of it."""
        drafts = self._verdicts(self.draft, events)
        lives: list[Verdict] = self._verdicts(self.live, events) if self.live else ["false"] * len(events)
        doubtful = [one for one, *both in zip(events, drafts, lives, strict=True) if "unknown" in both]
        today = self.as_of_today(doubtful, self.result["today"]) if doubtful else {}
        for event, draft, live in zip(events, drafts, lives, strict=True):
            completed = today.get(event.id)
            if completed is None:
                self._count(event, draft, live, approximate=False)
                continue
            one = self._verdicts(self.draft, [completed])[0]
            other: Verdict = self._verdicts(self.live, [completed])[0] if self.live else "false"
            self._count(completed, one, other, approximate="unknown" not in (one, other))

    def _verdicts(self, tenant: TenantRules, events: Iterable[EventRow]) -> list[Verdict]:
        """What the matcher makes of each event: the same code, the guards apart."""
        found: list[Verdict] = []
        for judged in judge(tenant, events):
            chosen = judged.chosen[0] if judged.chosen else None
            if judged.event.facts.get("erased") and listens(tenant.rules[0], judged.event):
                found.append(_of_erased(tenant, judged.event))
            elif chosen is None or (not chosen.judged and chosen.reason == "import_skipped"):
                found.append("false")
            else:
                found.append("true" if chosen.judged else "unknown")
        return found

    def as_of_today(self, events: Sequence[EventRow], counted: dict[str, int]) -> dict[int, EventRow]:
        """Events whose facts lack a field that rules read today, with the record's present value in its place.

        Each field that was put in is counted.
        """
        records: dict[str, set[int]] = {}
        for event in events:
            if event.facts.get("snapshot") and event.record is not None and event.model in registry.models:
                records.setdefault(event.model, set()).add(event.record)
        present = {
            model: capture.read_records(registry.model(model), sorted(ids), lock=False)
            for model, ids in records.items()
        }
        found: dict[int, EventRow] = {}
        for event in events:
            values = present.get(event.model, {}).get(event.record or 0, {})
            snapshot = event.facts.get("snapshot") or {}
            missing = {path: values[path] for path in self._reads() if path in values and path not in snapshot}
            if missing:
                found[event.id] = replace(event, facts={**event.facts, "snapshot": {**snapshot, **missing}})
                for path in missing:
                    counted[path] = counted.get(path, 0) + 1
        return found

    def _reads(self) -> list[str]:
        specs = [tenant.rules[0].spec for tenant in (self.draft, self.live) if tenant is not None]
        return sorted({path for spec in specs if spec is not None for path in spec.reads})

    def _count(self, event: EventRow, draft: Verdict, live: Verdict, *, approximate: bool) -> None:
        counts = self.result["counts"]
        counts["draft"] += draft == "true"
        counts["live"] += live == "true"
        counts["approximate"] += approximate
        kind = _kind(draft, live)
        if kind:
            counts[kind] += 1
            self._keep(kind, event, approximate=approximate)
        if draft == "true":
            self._estimate(event)

    def _keep(self, kind: str, event: EventRow, *, approximate: bool) -> None:
        kept = self.result["samples"][kind]
        if len(kept) < SAMPLES:
            kept.append(
                {
                    "event": event.id,
                    "record": event.record_key,
                    "at": event.created_at.isoformat(),
                    "approximate": approximate,
                }
            )

    def because(self, kind: str, event: EventRow) -> dict[str, Any] | None:
        """The first reason: of a lost one why the draft says no, of a new one why the live version does."""
        if kind == "both":
            return None
        if kind == "new":
            return None if self.live is None else _refusal(self.live, event, ("false", "unknown"))
        wanted = ("unknown",) if kind == "undecidable" else ("false",)
        found = _refusal(self.draft, event, wanted)
        return found or (_refusal(self.live, event, wanted) if self.live else None)

    def _estimate(self, event: EventRow) -> None:
        rule, estimates = self.draft.rules[0], self.result["estimates"]
        if rule.spec is None:
            return
        estimates["runs"] += 1
        for node in foresee(rule.spec, _judge_of(rule, event, self.draft)):
            estimates["steps"] += 1
            action = rule.action(node) if node.kind == "action" else None
            if action is not None:
                estimates["actions"][node.action] = estimates["actions"].get(node.action, 0) + 1
                if action.sends:
                    estimates["sends"][action.sends] = estimates["sends"].get(action.sends, 0) + 1


def _kind(draft: Verdict, live: Verdict) -> str:
    if "unknown" in (draft, live):
        return "undecidable"
    return {(True, True): "both", (True, False): "new", (False, True): "lost"}.get(
        (draft == "true", live == "true"), ""
    )


def _refusal(tenant: TenantRules, event: EventRow, wanted: Sequence[str]) -> dict[str, Any] | None:
    """Why that version doesn't run for the event: its trigger, or the first leaf with such a result."""
    rule = tenant.rules[0]
    if not listens(rule, event):
        return {"gate": "trigger"}
    spec: RuleSpec | None = rule.spec
    if spec is None:
        return {"gate": "broken_reference"}
    _verdict, reports = judge_stored(spec.condition, event.facts, Moment(now=event.created_at, zone=tenant.zone))
    leaf = next((one for one in reports if one.result in wanted), None)
    return None if leaf is None else _shown(leaf)


def _of_erased(tenant: TenantRules, event: EventRow) -> Verdict:
    """Of an event without some of its values, what hangs on those is unknown."""
    spec = tenant.rules[0].spec
    if spec is None:
        return "unknown"
    return judge_stored(spec.condition, event.facts, Moment(now=event.created_at, zone=tenant.zone))[0].value


def _shown(leaf: LeafReport) -> dict[str, Any]:
    return {
        "gate": "condition",
        "field": leaf.field,
        "op": leaf.op,
        "wanted": leaf.wanted,
        "read": leaf.read,
        "reason": leaf.reason,
    }


def _judge_of(rule: Compiled, event: EventRow, tenant: TenantRules) -> Any:
    moment = Moment(now=event.created_at, zone=tenant.zone)
    return lambda condition: rule.arm(condition)(event.facts, moment)
