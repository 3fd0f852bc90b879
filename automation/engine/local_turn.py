"""The transaction of a local step that isn't leading: its change, its outcome and what follows commit together."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import OperationalError, connection, transaction

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.conf import Conf
from automation.engine import arming, failing, taking
from automation.engine.advance import Advance
from automation.engine.capture import captured
from automation.engine.giving_way import in_a_moment, met_a_lock
from automation.engine.holding import held_back
from automation.engine.local import RecordInHand, take
from automation.engine.ports import Timers
from automation.engine.progress import GONE, FollowUp, RunInHand, StepInHand
from automation.engine.stretch import UNDOING, walk
from automation.engine.wave_turn import change_runs, let_be
from automation.store.claims import Claimed, Settlement
from automation.store.waves import Stale, StepIds, Wave

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class LocalTurn:
    """Does the local steps of one run, from the claimed one on, up to the first that must wait or go outside."""

    timers: Timers
    conf: Conf
    ids: StepIds
    advance: Advance
    armed: Callable[[int], object]  # makes sure that the events of the step get matched

    def run(self, claimed: Claimed) -> None:
        """One claimed step; a lock that isn't had puts it back for a moment, with no attempt counted."""
        try:
            try:
                self._in_transaction(claimed, careful=False)
            except UNDOING:
                self._in_transaction(claimed, careful=True)
        except Stale:
            log.warning("stale_settle", what="step", step_id=claimed.step_id)
        except OperationalError as error:
            if not met_a_lock(error):
                raise
            self.timers.put_back(claimed, due_at=in_a_moment(self.timers.now()))

    def _in_transaction(self, claimed: Claimed, *, careful: bool) -> None:
        with arming.left_to_caller(), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
            inside = taking.take([claimed], self.timers)
            if claimed.timer_id not in inside.ours:
                raise Stale
            wave = Wave()
            settlement = self._decide(claimed, inside, wave, careful=careful)
            change_runs(inside, wave)
            wave.write()
            self.timers.write(wave.timers)
            self.timers.settle([settlement])
            self.timers.hold(wave.held)
            self.timers.shelve(wave.shelved)
            has_events = bool(captured().tenants or wave.events)
        failing.judge(wave.failed)
        if has_events:
            self.armed(claimed.tenant_id)

    def _decide(self, claimed: Claimed, inside: taking.InHand, wave: Wave, *, careful: bool) -> Settlement:
        (row, run), step = inside.of(claimed), inside.step(claimed)
        if row is None:
            return _settlement(claimed, GONE, inside.now)
        step_row = inside.step_row(claimed)
        held = held_back(row, run if step is not None else None, step_row, lane_paused=row.lane_paused)
        if held is not None or run is None or step is None:
            return let_be(claimed, held, row, run, step_row, wave, now=inside.now)
        run.reason = ""
        return _settlement(claimed, self._stretch(claimed, run, step, wave, careful=careful), inside.now)

    def _stretch(self, claimed: Claimed, run: RunInHand, step: StepInHand, wave: Wave, *, careful: bool) -> FollowUp:
        if claimed.lost >= self.conf.lost_limit:
            outcome = Outcome.retry(f"Its worker died {claimed.lost} times in a row.")
            return self.advance.fail(run, step, outcome, wave, reason="poison")
        record = _record(run)
        if run.fresh is not None and record is not None:
            run.fresh = taking.still_known(run, record.values or {})
        if run.was != "running":
            run.state = "running"
        stretch = walk(run, step.node.index, record, ids=self.ids.next, existing=step.row, careful=careful)
        return self.advance.after_stretch(stretch, wave)


def _record(run: RunInHand) -> RecordInHand | None:
    event = run.event
    if not event.model or event.record is None:
        return None
    return take(registry.model(event.model), event.tenant_id, [event.record])[0]


def _settlement(claimed: Claimed, follow_up: FollowUp, now: datetime) -> Settlement:
    due_at = None if follow_up == GONE else follow_up.due_at or now
    return Settlement(claimed.timer_id, claimed.lease_seq, follow_up.kind, due_at, follow_up.step_id)
