"""The transaction of a local step that isn't leading: its change, its outcome and what follows commit together."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import OperationalError, connection, transaction

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.conf import Conf
from automation.engine import arming, taking
from automation.engine.advance import Advance
from automation.engine.execute import Cancel, Drop, PutBack, held_back
from automation.engine.local import RecordInHand, take
from automation.engine.ports import Timers
from automation.engine.progress import GONE, FollowUp, RunInHand, StepInHand
from automation.engine.stretch import UNDOING, walk
from automation.engine.wave_turn import cancel_now
from automation.store.claims import Claimed, Settlement
from automation.store.waves import RunChange, Stale, StepIds, Wave

log = structlog.get_logger(__name__)
GIVE_WAY = 0.2
LOCK_STATES = frozenset({"55P03", "40P01"})


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
            self._in_transaction(claimed, careful=False)
        except Stale:
            log.warning("stale_settle", what="step", step_id=claimed.step_id)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") not in LOCK_STATES:
                raise
            self.timers.put_back(claimed, due_at=self.timers.now() + timedelta(seconds=GIVE_WAY))
        except UNDOING:
            self._in_transaction(claimed, careful=True)

    def _in_transaction(self, claimed: Claimed, *, careful: bool) -> None:
        put_back: PutBack | None = None
        with arming.left_to_caller(), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
            inside = taking.take([claimed], self.timers)
            if claimed.timer_id not in inside.ours:
                raise Stale
            wave = Wave()
            decided = self._decide(claimed, inside, wave, careful=careful)
            wave.write()
            self.timers.write(wave.timers)
            if isinstance(decided, PutBack):
                put_back = decided
            else:
                self.timers.settle([_settlement(claimed, decided, self.timers)])
        if put_back is not None:
            self.timers.put_back(claimed, due_at=self.timers.now() + timedelta(seconds=put_back.seconds))
        else:
            self.armed(claimed.tenant_id)

    def _decide(self, claimed: Claimed, inside: taking.InHand, wave: Wave, *, careful: bool) -> FollowUp | PutBack:
        row, run = inside.of(claimed)
        step = inside.step(claimed.step_id)
        if row is None or (run is not None and step is None):
            return GONE
        held = held_back(row, run, step.row if step else None, lane_paused=row.lane_paused)
        if isinstance(held, PutBack):
            if held.reason and held.reason != row.reason:
                wave.runs.append(RunChange(row.id, row.state, row.state, held.reason))
            return held
        if isinstance(held, Drop) or run is None or step is None:
            return GONE
        follow_up = GONE
        if isinstance(held, Cancel):
            cancel_now(run, row, step, wave)
        else:
            run.reason = ""
            follow_up = self._stretch(claimed, run, step, wave, careful=careful)
        wave.runs.append(RunChange(run.id, run.was, run.state, run.reason))
        return follow_up

    def _stretch(self, claimed: Claimed, run: RunInHand, step: StepInHand, wave: Wave, *, careful: bool) -> FollowUp:
        if claimed.lost >= self.conf.lost_limit:
            outcome = Outcome.retry(f"Its worker died {claimed.lost} times in a row.")
            return self.advance.fail(run, step, outcome, wave, reason="poison")
        record = _record(run)
        if run.fresh is not None and record is not None:
            run.fresh = dict(record.values or {})
        if run.was != "running":
            run.state = "running"
        stretch = walk(run, step.node.index, record, ids=self.ids.next, existing=step.row, careful=careful)
        return self.advance.after_stretch(stretch, wave)


def _record(run: RunInHand) -> RecordInHand | None:
    event = run.event
    if not event.model or event.record is None:
        return None
    return take(registry.model(event.model), event.tenant_id, event.record)


def _settlement(claimed: Claimed, follow_up: FollowUp, timers: Timers) -> Settlement:
    due_at = None if follow_up == GONE else follow_up.due_at or timers.now()
    return Settlement(claimed.timer_id, claimed.lease_seq, follow_up.kind, due_at, follow_up.step_id)
