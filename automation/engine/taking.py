"""Takes runs in hand: locks them, loads their versions and their tenants' rules, and reads what their steps need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from automation.catalog import registry
from automation.core.erasing import EVERYTHING
from automation.core.spec import RuleSpec
from automation.engine import capture, ruleset
from automation.engine.ports import Timers
from automation.engine.progress import RunInHand, StepInHand
from automation.engine.ruleset import Compiled
from automation.store import runs as store
from automation.store.claims import Claimed
from automation.store.runs import RunRow, StepRow

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class InHand:
    """What a transaction has locked and read: runs, their steps, and which leases still stand."""

    rows: dict[int, RunRow]
    runs: dict[int, RunInHand]
    steps: dict[int, StepRow]
    ours: set[int]  # the timers whose leases stand
    now: datetime

    def of(self, claimed: Claimed) -> tuple[RunRow | None, RunInHand | None]:
        """The run that a timer names; one of another tenant is as if there were none, and an alarm."""
        row = self.rows.get(claimed.run_id or 0)
        if row is None:
            return None, None
        if row.tenant_id != claimed.tenant_id:
            log.error("alarm", what="timer of another tenant", timer_id=claimed.timer_id, run_id=row.id)
            return None, None
        return row, self.runs.get(row.id)

    def step_row(self, claimed: Claimed) -> StepRow | None:
        """The step that a timer names, of the run that it names."""
        row = self.steps.get(claimed.step_id or 0)
        return row if row is not None and row.run_id == claimed.run_id else None

    def step(self, claimed: Claimed) -> StepInHand | None:
        """The step with its node in the run's version; None where this process can't read it or finds no such node."""
        row = self.step_row(claimed)
        run = self.runs.get(row.run_id) if row is not None else None
        node = run.node(row.path) if row is not None and run is not None else None
        if row is None or node is None:
            return None
        return StepInHand(node=node, id=row.id, row=row, attempts=row.attempts, key=row.idempotency_key)


def take(claimed: Sequence[Claimed], timers: Timers) -> InHand:
    """Locks the runs of these timers, ascending, then the leases, and reads everything else.

    A run whose version can't be compiled isn't in `runs`.
    """
    rows = timers.lock_runs([one.run_id for one in claimed if one.run_id])
    steps = store.steps([one.step_id for one in claimed if one.step_id])
    now, ours = timers.begin(claimed)
    versions = ruleset.by_version(row.version_id for row in rows.values())
    runs = {
        row.id: in_hand(row, versions[row.version_id], now=now)
        for row in rows.values()
        if row.version_id in versions and versions[row.version_id].spec is not None
    }
    return InHand(rows=rows, runs=runs, steps=steps, ours=ours, now=now)


def in_hand(row: RunRow, rule: Compiled, *, now: datetime) -> RunInHand:
    """A locked run with its tenant's rules, and what its earlier steps left where later ones look at it."""
    run = RunInHand(
        id=row.id,
        tenant=ruleset.of_tenant(row.tenant_id, row.rules_version),
        rule=rule,
        event=row.event,
        was=row.state,
        now=now,
        forked=row.forked,
        epoch=row.epoch,
        reason=row.reason,
    )
    if rule.spec is not None and _looks_back(rule.spec):
        past = store.outputs(row.id)
        run.outputs = past["outputs"]
        if past["slept"]:
            run.fresh = present(run)
    if run.fresh is None and row.event.facts.get("erased"):
        run.fresh = present(run)
    return run


def present(run: RunInHand) -> dict[str, object]:
    """The record's values as they are now, which steps after a sleep read; empty when it is gone."""
    event = run.event
    if not event.model or event.record is None:
        return {}
    found = capture.read_records(registry.model(event.model), [event.record], lock=False).get(event.record, {})
    return still_known(run, found)


def still_known(run: RunInHand, values: Mapping[str, object]) -> dict[str, object]:
    """The record's values without those that are empty because the person was erased: a step that names one fails."""
    erased = run.event.facts.get("erased")
    if not erased:
        return dict(values)
    gone = registry.model(run.event.model).personal if EVERYTHING in erased else erased
    return {path: value for path, value in values.items() if path not in gone or value not in (None, "")}


def _looks_back(spec: RuleSpec) -> bool:
    """Whether later steps need what earlier ones left: outputs that templates name, or a sleep that ages the facts."""
    return any(node.kind == "delay" for node in spec.nodes) or any(name.startswith("steps.") for name in spec.reads)
