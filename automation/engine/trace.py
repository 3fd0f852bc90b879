"""Puts together everything that is known about one run, for a page that explains it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from automation.catalog import registry
from automation.core.erased import judge_stored
from automation.core.moments import Moment
from automation.core.spec import Condition, Node, RuleSpec
from automation.definitions.tree import parts
from automation.engine import chain, waiting
from automation.engine.chain import Link
from automation.engine.judged import as_judged
from automation.engine.labels import label
from automation.engine.reports import NOT_REACHED, ArmReport, ConditionReport, EventReport, FieldChange, StepReport
from automation.engine.ruleset import by_version
from automation.engine.waiting import TimerRow
from automation.models import Attempt, DeadLetter, Event, Run, StepExecution
from tenants.models import AuditEntry, Tenant


@dataclass(frozen=True, slots=True)
class Trace:
    """One run, explained: why it ran, what it did, what it waits for, what led to it and what it led to.

    `broken` says why the version can't be read any more; conditions and steps not reached are then missing.
    `people` is what people did to it, oldest first; `replays` are the runs that replay it.
    """

    run: Run
    version: int
    definition: dict[str, Any]
    broken: str
    record_label: str
    state: str
    reason: str
    waiting: str
    event: EventReport
    condition: ConditionReport | None
    forgotten: bool  # retention, or an erasing, has removed what it was judged on
    steps: list[StepReport]
    causes: list[Link]
    effects: list[Link]
    people: list[AuditEntry]
    replays: list[int]

    @property
    def dead_letter(self) -> DeadLetter | None:
        """The dead letter that waits for a person, where there is one."""
        return next((step.dead_letter for step in self.steps if step.dead_letter is not None), None)


def trace(run_id: int) -> Trace:
    """The trace of a run of the current tenant; `Run.DoesNotExist` where it has none of that id."""
    run = Run.objects.select_related("rule", "rule_version", "event").get(pk=run_id)
    tenant = Tenant.objects.get(pk=run.tenant_id)
    compiled = by_version([run.rule_version_id]).get(run.rule_version_id)
    spec = compiled.spec if compiled else None
    moment = Moment(now=run.event.created_at, zone=tenant.zone)
    timers = waiting.timers(run.pk)
    forgotten = run.event.details_removed_at is not None
    steps = _Steps(run, spec, moment, timers).reports()
    return Trace(
        run=run,
        version=run.rule_version.number,
        definition=run.rule_version.definition,
        broken=compiled.broken if compiled else "",
        record_label=label(run.model, run.record),
        state=run.state,
        reason=run.reason,
        waiting=waiting.sentence(run, run.rule, timers, tenant.zone),
        event=_event(run.event),
        condition=_condition(spec.condition, run.event, moment) if spec and not forgotten else None,
        forgotten=forgotten,
        steps=steps,
        causes=chain.up(run.event),
        effects=chain.down(run.pk),
        people=_people(run.pk),
        replays=list(Run.objects.filter(forked_from_run=run).order_by("id").values_list("id", flat=True)),
    )


def _event(event: Event) -> EventReport:
    facts = event.facts
    before, after = facts.get("before") or {}, facts.get("after") or {}
    named = _field_labels(event.model, {*before, *after})
    return EventReport(
        id=event.pk,
        kind=event.kind,
        change=event.change,
        name=event.name,
        actor=event.actor,
        source=event.source,
        batch=event.batch,
        depth=event.depth,
        created_at=event.created_at,
        matched_at=event.matched_at,
        changes=[FieldChange(one, named[one], before.get(one), after.get(one)) for one in {**before, **after}],
        snapshot=dict(facts.get("snapshot") or {}),
        data=dict(facts.get("data") or {}),
        cut=list(facts.get("cut") or ()),
    )


def _condition(
    condition: Condition | None, event: Event, moment: Moment, facts: dict[str, Any] | None = None
) -> ConditionReport:
    """`facts` where they aren't the event's own."""
    facts = event.facts if facts is None else facts
    verdict, leaves = judge_stored(condition, facts, moment)
    return ConditionReport(
        verdict.value, verdict.reason, leaves, _field_labels(event.model, {leaf.field for leaf in leaves})
    )


def _field_labels(model: str, paths: Iterable[str]) -> dict[str, str]:
    """A name for every path; one that the catalog doesn't know any more is its own name."""
    entry = registry.models.get(model)
    fields = entry.fields if entry else {}
    return {path: fields[path].label if path in fields else path for path in paths}


def _people(run_id: int) -> list[AuditEntry]:
    letters = DeadLetter.objects.filter(run_id=run_id).values_list("id", flat=True)
    targets = [f"run:{run_id}", *(f"dead_letter:{one}" for one in letters)]
    return list(AuditEntry.objects.filter(target__in=targets).order_by("id"))


class _Steps:
    """The steps of one run: those of the version in its order, each with what became of it."""

    def __init__(self, run: Run, spec: RuleSpec | None, moment: Moment, timers: Mapping[int, TimerRow]) -> None:
        self.run, self.spec, self.moment, self.timers = run, spec, moment, timers
        self.rows = {row.path: row for row in StepExecution.objects.filter(run=run).order_by("id")}
        self.written = {str(part.value.get("id")): part for part in parts(run.rule_version.definition)}
        self.attempts: dict[int, list[Attempt]] = {}
        for attempt in Attempt.objects.filter(step__run=run).order_by("step_id", "number"):
            self.attempts.setdefault(attempt.step_id, []).append(attempt)
        self.letters = {one.step_id: one for one in DeadLetter.objects.filter(run=run, resolved_at=None)}

    def reports(self) -> list[StepReport]:
        """One report a node, then those of rows that the version doesn't explain."""
        nodes: Sequence[Node] = self.spec.nodes if self.spec else ()
        known = {node.path for node in nodes}
        return [self._of_node(node) for node in nodes] + [
            self._report(row.path, row.path.rpartition("/")[2], row, kind=row.kind, action=row.action)
            for row in self.rows.values()
            if row.path not in known
        ]

    def _of_node(self, node: Node) -> StepReport:
        row = self.rows.get(node.path)
        return self._report(
            node.path,
            node.id,
            row,
            kind=node.kind,
            action=node.action,
            off=node.off,
            effect=node.effect,
            max_attempts=node.retry.max_attempts if node.retry else None,
            arms=self._arms(node, row) if node.kind == "branch" else [],
        )

    def _report(
        self,
        path: str,
        step_id: str,
        row: StepExecution | None,
        *,
        kind: str,
        action: str,
        off: bool = False,
        effect: str = "",
        max_attempts: int | None = None,
        arms: list[ArmReport] | None = None,
    ) -> StepReport:
        registered, written = registry.actions.get(action), self.written.get(step_id)
        return StepReport(
            path=path,
            id=step_id,
            level=written.depth - 1 if written else 0,
            kind=kind,
            action=action,
            action_label=str(registered.label) if registered else action,
            off=off,
            note=str(written.value.get("note") or "") if written else "",
            effect=effect,
            state=row.state if row else NOT_REACHED,
            reason=row.reason if row else "",
            row=row,
            attempts=self.attempts.get(row.pk, []) if row else [],
            counted=row.attempts - row.retried_at_attempt if row else 0,
            max_attempts=max_attempts,
            timer=self.timers.get(row.pk) if row else None,
            arms=arms or [],
            dead_letter=self.letters.get(row.pk) if row else None,
        )

    def _arms(self, node: Node, row: StepExecution | None) -> list[ArmReport]:
        """Arms were judged on the event until the run has slept; after it on values that older rows don't have."""
        taken = (row.output or {}).get("taken") if row else None
        event, found = self.run.event, None
        if row is not None and event.details_removed_at is None:
            slept, moment = self._slept_before(row), self.moment
            found = as_judged(event.facts, row.input, slept=slept, otherwise=moment.now, zone=moment.zone)
        if found is None:
            return [ArmReport(arm.id, arm.id == taken, None) for arm in node.arms]
        facts, moment = found
        return [
            ArmReport(arm.id, arm.id == taken, _condition(arm.condition, event, moment, facts)) for arm in node.arms
        ]

    def _slept_before(self, row: StepExecution) -> bool:
        """A step that a delay's end leads to is written together with that end, but later than the delay."""
        delays = (one for one in self.rows.values() if one.kind == "delay" and one.state == "succeeded")
        return any(one.created_at and row.created_at and one.created_at < row.created_at for one in delays)
