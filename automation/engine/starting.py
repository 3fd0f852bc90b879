"""Starts the runs of an event in its transaction: leading local steps in position order, then the first wake-up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from automation.catalog import registry
from automation.core.spec import RuleSpec
from automation.engine.advance import Advance
from automation.engine.ended import add_ended
from automation.engine.holding import PUT_OFF
from automation.engine.local import RecordInHand, take
from automation.engine.match import Chosen, Judged
from automation.engine.progress import FollowUp, RunInHand, longest_life
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.stretch import walk
from automation.store import runs
from automation.store.events import EventRow
from automation.store.timers import NewTimer
from automation.store.waves import NewRun, StepIds, Wave

TOGETHER = 50  # events a transaction
LOCKED_STEPS = 12  # local steps in a transaction of several events: their records stay locked for milliseconds only
LEADING = 2000  # local steps in an event's transaction; the rules after them start in transactions of their own


@dataclass(slots=True)
class Starting:
    """What an event's transaction starts with: the tenant's rules, the time, and ids for runs and steps."""

    tenant: TenantRules
    now: datetime
    run_ids: Iterator[int]
    step_ids: StepIds
    advance: Advance
    careful: bool = False
    records: dict[tuple[str, int], RecordInHand] = field(default_factory=dict)

    def lock(self, group: list[Judged]) -> None:
        """Locks and reads the records of several events at once; what is left out `start` takes when it needs it."""
        wanted: dict[str, set[int]] = {}
        for one in group if len(group) > 1 else ():
            if one.event.record is not None and any(map(_touches, one.chosen)):
                wanted.setdefault(one.event.model, set()).add(one.event.record)
        for model, ids in sorted(wanted.items()):
            for record in take(registry.model(model), self.tenant.tenant_id, sorted(ids)):
                self.records[model, record.id] = record

    def start(self, judged: Judged, wave: Wave) -> int:
        """Puts an event's runs into the wave; answers how many local steps were done."""
        event = judged.event
        old = sorted({run_id for chosen in judged.chosen for run_id in chosen.supersedes})
        if old:
            runs.supersede(event.tenant_id, old)
        record = self._record(judged)
        steps, stopped = 0, False
        for chosen in judged.chosen:
            run = self._in_hand(chosen, event)
            if stopped and not chosen.reason:
                chosen.reason = "stopped_by_rule"
            if chosen.reason:
                run.state, run.reason = "suppressed", chosen.reason
            elif chosen.held:
                self._keep(run, chosen, wave)
            elif steps >= LEADING:
                self._follow(run, self.advance.enter(run, run.spec.first, wave), wave)
            else:
                stretch = walk(run, run.spec.first, record, ids=self.step_ids.next, careful=self.careful)
                steps += len(stretch.wave.new_steps) + bool(stretch.failed)
                stopped = stretch.stops_later
                self._follow(run, self.advance.after_stretch(stretch, wave), wave)
            wave.new_runs.append(_row(run))
            add_ended(wave, [run])
        wave.matched.append(event.id)
        return steps

    def _in_hand(self, chosen: Chosen, event: EventRow) -> RunInHand:
        return RunInHand(
            id=next(self.run_ids), tenant=self.tenant, rule=chosen.rule, event=event, was="pending", now=self.now
        )

    def _record(self, judged: Judged) -> RecordInHand | None:
        event = judged.event
        if not event.model or event.record is None or not any(map(_touches, judged.chosen)):
            return None
        held = self.records.get((event.model, event.record))
        return held or take(registry.model(event.model), event.tenant_id, [event.record])[0]

    def _follow(self, run: RunInHand, follow_up: FollowUp, wave: Wave) -> None:
        if follow_up.kind is not None:
            timer = NewTimer(run.event.tenant_id, follow_up.kind, follow_up.due_at, run_id=run.id)
            wave.timers.append(timer._replace(step_id=follow_up.step_id))

    def _keep(self, run: RunInHand, chosen: Chosen, wave: Wave) -> None:
        """A paused rule gets its run, which waits: that is how its events are kept while other rules go on."""
        follow_up = self.advance.enter(run, run.spec.first, wave)
        run.reason = chosen.held
        if follow_up.kind == "step":
            follow_up = follow_up._replace(due_at=run.now + timedelta(seconds=PUT_OFF))
            wave.shelve(run.event.tenant_id, ("rule", run.rule.rule_id), follow_up.step_id)
        self._follow(run, follow_up, wave)


def groups(judged: list[Judged]) -> Iterator[list[Judged]]:
    """Events in their order, cut into transactions.

    Together go events of different records, as long as their local steps are few. An event whose rules look at other
    runs of theirs has a transaction of its own: it must see what the earlier ones did.
    """
    group: list[Judged] = []
    steps, records = 0, set[tuple[str, int | None]]()
    for one in judged:
        more, record = _local_steps(one), (one.event.model, one.event.record)
        alone = not _independent(one) or bool(group and not _independent(group[-1]))
        if group and (alone or len(group) >= TOGETHER or steps + more > LOCKED_STEPS or (more and record in records)):
            yield group
            group, steps, records = [], 0, set()
        group.append(one)
        steps += more
        if more:
            records.add(record)
    if group:
        yield group


def _independent(judged: Judged) -> bool:
    """Whether what becomes of an event's runs depends on no other run."""
    return all(
        bool(chosen.reason) or (chosen.rule.spec is not None and _free(chosen.rule.spec)) for chosen in judged.chosen
    )


def _local_steps(judged: Judged) -> int:
    """How many local steps the event's rules may do at once, at most."""
    return sum(
        sum(node.local for node in chosen.rule.spec.nodes)
        for chosen in judged.chosen
        if _touches(chosen) and chosen.rule.spec is not None
    )


def _free(spec: RuleSpec) -> bool:
    """Whether no other run of the rule has a say in whether a run starts."""
    return spec.again == "both" and spec.limit is None


def _touches(chosen: Chosen) -> bool:
    """Whether the rule's leading steps may touch the record; if none does, it isn't locked."""
    return not chosen.reason and not chosen.held and _leads_local(chosen.rule)


def _leads_local(rule: Compiled) -> bool:
    if rule.spec is None or rule.spec.first is None:
        return False
    first = rule.spec.nodes[rule.spec.first]
    return first.local or ((first.kind == "branch" or first.off) and any(node.local for node in rule.spec.nodes))


def _row(run: RunInHand) -> NewRun:
    event = run.event
    return NewRun(
        id=run.id,
        tenant_id=event.tenant_id,
        rule_id=run.rule.rule_id,
        version_id=run.rule.version_id,
        event_id=event.id,
        state=run.state,
        reason=run.reason,
        model=event.model,
        record=event.record,
        root_event_id=event.root_id,
        depth=event.cause.depth,
        life=longest_life(run.rule.spec, now=run.now, zone=run.tenant.zone),
    )
