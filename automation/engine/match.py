"""Judges events against the tenant's rules: which runs start, and which are suppressed and why."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from automation.conf import Conf
from automation.core.calendars import add
from automation.core.causes import may_continue
from automation.core.conditions import Verdict
from automation.core.moments import Moment
from automation.core.states import Reason
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.served import ServedBatches
from automation.store import protection
from automation.store import runs as store
from automation.store.events import EventRow

BUDGET_DEPTH = 2  # runs at depth 0 and 1 don't count against the root event's budget
RATE_LIMIT = 20
FORESEEN = 500  # pairs of rule and record asked for together; further ones one by one
RATE_MINUTES = 10
UNCOUNTED_SOURCES = frozenset({"person", "import"})


@dataclass(slots=True)
class Chosen:
    """A rule that matched an event: it starts, waits (`held`), or is suppressed for a reason.

    `judged` is false where no more is asked: its condition couldn't be judged, or the rule leaves the import out. Then
    it is suppressed, whatever else holds.
    """

    rule: Compiled
    reason: str = ""
    held: str = ""
    supersedes: list[int] = field(default_factory=list)
    judged: bool = True


@dataclass(slots=True)
class Judged:
    """An event with the rules that matched it, or couldn't be judged, in position order."""

    event: EventRow
    chosen: list[Chosen]


def judge(tenant: TenantRules, events: Iterable[EventRow], *, seconds: float = math.inf) -> list[Judged]:
    """Judges events on their own snapshots, as of the moment they were written, before anything acts.

    As many as the time allows, and one at least: the others come in the next turn.
    """
    ends_at, judged = time.monotonic() + seconds, list[Judged]()
    for event in events:
        judged.append(_judge(tenant, event))
        if time.monotonic() > ends_at:
            break
    return judged


def _judge(tenant: TenantRules, event: EventRow) -> Judged:
    judged = Judged(event=event, chosen=[])
    if event.facts.get("quiet"):
        return judged
    moment = Moment(now=event.created_at, zone=tenant.zone)
    for rule in candidates(tenant, event):
        if not listens(rule, event):
            continue
        verdict = _verdict(rule, event, moment)
        if verdict.value == "true":
            judged.chosen.append(_matched(rule, event))
        elif verdict.value == "unknown":
            judged.chosen.append(Chosen(rule, reason=_reason_of(verdict), judged=False))
    return judged


def _matched(rule: Compiled, event: EventRow) -> Chosen:
    left_out = event.source == "import" and rule.spec is not None and rule.spec.imports == "skip"
    return Chosen(rule, reason=Reason.IMPORT_SKIPPED.value, judged=False) if left_out else Chosen(rule)


def _verdict(rule: Compiled, event: EventRow, moment: Moment) -> Verdict:
    """True, false or unknown; a rule that is broken is unknown and stops none of the others."""
    return Verdict("unknown", "broken_reference") if rule.judge is None else rule.judge(event.facts, moment)


def _reason_of(verdict: Verdict) -> str:
    known = {reason.value for reason in Reason}
    return verdict.reason if verdict.reason in known else Reason.UNKNOWN_FIELD.value


def candidates(tenant: TenantRules, event: EventRow) -> Sequence[Compiled]:
    """The rules that may listen to the event."""
    if event.kind == "manual" or (event.kind == "record_changed" and event.name):
        return [rule for rule in tenant.rules if str(rule.rule_id) == event.name]
    return tenant.candidates(kind=event.kind, model=event.model, name=event.name, changed=event.changed())


def listens(rule: Compiled, event: EventRow) -> bool:
    """Whether the rule's trigger accepts the event, its condition apart."""
    trigger = rule.trigger
    if trigger is None or trigger.kind != event.kind:
        return False
    if event.kind != "record_changed":
        return not trigger.on or not trigger.on.isdisjoint(event.outcomes())
    if (event.name and event.name != str(rule.rule_id)) or (trigger.on and event.change not in trigger.on):
        return False
    if trigger.sources and event.source not in trigger.sources and event.source not in ("import", "schedule"):
        return False
    return not trigger.fields or event.change != "updated" or not trigger.fields.isdisjoint(event.changed())


@dataclass(slots=True)
class Guard:
    """Loop guard and re-entry for one batch: what it lets start in the batch counts for what comes after."""

    tenant: TenantRules
    conf: Conf
    held_now: dict[int, Compiled] = field(default_factory=dict)  # rules that this batch found to run too often
    _rates: Counter[tuple[int, str]] = field(default_factory=Counter)
    _budgets: Counter[int] = field(default_factory=Counter)
    _asked: set[object] = field(default_factory=set)
    _served: ServedBatches = field(default_factory=ServedBatches)

    def weigh(self, judged: Judged, now: datetime) -> list[Compiled]:
        """Writes into each chosen rule why it must not start, waits, or what it replaces; answers rules to be held."""
        too_often: list[Compiled] = []
        for chosen in (one for one in judged.chosen if one.judged):
            chosen.held = "paused" if self._is_held(chosen.rule) else ""
            chosen.supersedes = []
            chosen.reason = self._reason(chosen.rule, judged.event)
            if chosen.reason == "rate":
                too_often.append(chosen.rule)
        self._limit(judged, now)
        self._again(judged)
        return too_often

    def mark(self) -> "Guard":
        """A copy of what is counted so far, so that a transaction that is undone counts for nothing."""
        return replace(
            self,
            held_now=dict(self.held_now),
            _rates=Counter(self._rates),
            _budgets=Counter(self._budgets),
            _asked=set(self._asked),
            _served=self._served.mark(),
        )

    def count(self, judged: Judged, held: list[Compiled]) -> None:
        """Remembers what has been committed: it counts for the events that follow in the batch."""
        self.held_now |= {rule.rule_id: rule for rule in held}
        for chosen in judged.chosen:
            if not chosen.reason:
                self._count(chosen.rule, judged.event)
                self._served.serve(chosen.rule, judged.event)

    def write(self) -> None:
        """Claims the batches of imports that rules have just run for, once and for all, in the caller's transaction."""
        self._served.claim(self.tenant.tenant_id)

    def _is_held(self, rule: Compiled) -> bool:
        return rule.rule_id in self.tenant.paused_rules or rule.rule_id in self.held_now

    def _reason(self, rule: Compiled, event: EventRow) -> str:
        if self._served.knows(rule, event):
            return Reason.IMPORT_SKIPPED.value
        if self.conf.loop_guard:
            looped = may_continue(event.cause, rule.rule_id, event.record_key, max_depth=self.tenant.max_depth)
            if looped:
                return looped
            if self._too_often(rule, event):
                return "rate"
        return "loop_budget" if self._overspent(event) else ""

    def _too_often(self, rule: Compiled, event: EventRow) -> bool:
        if event.source in UNCOUNTED_SOURCES or event.record is None or self._is_held(rule):
            return False
        key = (rule.rule_id, event.record_key)
        if key not in self._asked:
            self._ask([(rule.rule_id, event.model, event.record)])
        return self._rates[key] >= RATE_LIMIT

    def foresee(self, judged: Sequence[Judged]) -> None:
        """Asks at once what the guard will want to know of a batch of events.

        How often its rules ran of late on its records, and which of them have run already for a batch of an import.
        """
        self._served.ask(self.tenant.tenant_id, ((one.rule, judge.event) for judge in judged for one in judge.chosen))
        for one in judged:
            for chosen in one.chosen:
                if chosen.judged and self._served.knows(chosen.rule, one.event):
                    chosen.reason, chosen.judged = Reason.IMPORT_SKIPPED.value, False
        if not self.conf.loop_guard:
            return
        wanted = {
            (chosen.rule.rule_id, one.event.model, one.event.record): None
            for one in judged
            if one.event.source not in UNCOUNTED_SOURCES and one.event.record is not None
            for chosen in one.chosen
            if chosen.judged and not self._is_held(chosen.rule)
        }
        self._ask(list(wanted)[:FORESEEN])

    def _ask(self, asked: Sequence[tuple[int, str, int]]) -> None:
        for (rule_id, model, record), count in store.lately(self.tenant.tenant_id, asked, minutes=RATE_MINUTES).items():
            self._asked.add((rule_id, f"{model}:{record}"))
            self._rates[(rule_id, f"{model}:{record}")] += count

    def _overspent(self, event: EventRow) -> bool:
        if event.cause.depth < BUDGET_DEPTH:
            return False
        root = event.root_id
        if root not in self._asked:
            self._asked.add(root)
            self._budgets[root] += store.spent(root, self.conf.loop_stop)
        return self._budgets[root] >= self.conf.loop_stop

    def _count(self, rule: Compiled, event: EventRow) -> None:
        if event.source not in UNCOUNTED_SOURCES:
            self._rates[(rule.rule_id, event.record_key)] += 1
        if event.cause.depth >= BUDGET_DEPTH:
            self._budgets[event.root_id] += 1

    def _limit(self, judged: Judged, now: datetime) -> None:
        """Rules that may run only so often for a record. The run's own row is the claim on its place in the span:
        it is written in the transaction that asks, and a tenant's events are matched under one lease at a time.
        """
        event = judged.event
        asking = [
            (one, one.rule.spec.limit)
            for one in judged.chosen
            if not one.reason and one.rule.spec and one.rule.spec.limit and event.record is not None
        ]
        if not asking:
            return
        wanted = {one.rule.rule_id: limit.runs for one, limit in asking}
        newest = protection.newest_runs(event.tenant_id, event.model, event.record or 0, wanted)
        for one, limit in asking:
            before = newest.get(one.rule.rule_id, [])
            if len(before) >= limit.runs and add(min(before), limit.per, self.tenant.zone) > now:
                one.reason = Reason.LIMIT_PER_RECORD.value

    def _again(self, judged: Judged) -> None:
        """Re-entry, asked of the database at each event: runs of earlier events of the batch are committed by then."""
        event = judged.event
        if event.record is None:
            return
        asking = [one for one in judged.chosen if not one.reason and one.rule.spec and one.rule.spec.again != "both"]
        waiting = store.waiting(event.tenant_id, [(one.rule.rule_id, event.model, event.record) for one in asking])
        for one in asking:
            found = waiting.get((one.rule.rule_id, event.model, event.record))
            if not found or one.rule.spec is None:
                continue
            if one.rule.spec.again == "keep":
                one.reason = "already_waiting"
            else:
                one.supersedes = found
