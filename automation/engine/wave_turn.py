"""The transaction of a wave: settles what came back, ends delays, and commits the intents of what was just claimed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog
from django.db import Error, OperationalError, connection, transaction

from automation import failpoints
from automation.catalog.action import Outcome
from automation.conf import Conf
from automation.core.states import RUN_MOVES, may_move
from automation.engine import admission, delivery, failing, taking, turns
from automation.engine.admission import Admission
from automation.engine.advance import Advance
from automation.engine.effects import EffectCall, Finished
from automation.engine.ended import add_ended
from automation.engine.execute import LOST, Ended, Execute, Intended, came_back
from automation.engine.giving_way import GIVE_WAY
from automation.engine.holding import Cancel, Drop, PutBack, as_asked, held_back, is_to_end
from automation.engine.ports import Timers
from automation.engine.progress import GONE, FollowUp, RunInHand, StepInHand
from automation.engine.stretch import write_step
from automation.engine.threads import FENCED
from automation.store.claims import UNTOUCHED, Claimed, Settlement
from automation.store.places import Waiting
from automation.store.runs import RunRow, StepRow
from automation.store.waves import ClosedAttempt, RunChange, Stale, StepChange, StepIds, Wave

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Done:
    """What a wave leaves to do once it is committed: effects to start, and what it couldn't write."""

    calls: list[EffectCall] = field(default_factory=list)
    put_backs: list[tuple[Claimed, float]] = field(default_factory=list)  # met somebody's lock: due again in so many s
    again: list[Finished] = field(default_factory=list)  # outcomes that met somebody's lock: the next turn settles them
    heard: set[int] = field(default_factory=set)  # tenants of whom an event was written: to be armed
    places: set[int] = field(default_factory=set)  # connections that may have a place for steps that wait
    broken: Error | None = None  # the connection was lost amid it; claimed ones that are in none of these are adopted


@dataclass(slots=True)
class WaveTurn:
    """Settles and intends for all runs in hand with one statement a table and one commit."""

    timers: Timers
    conf: Conf
    ids: StepIds
    advance: Advance
    execute: Execute

    def run(self, finished: Sequence[Finished], claimed: Sequence[Claimed]) -> Done:
        """One wave; where it fails it is done again one run at a time, so that a bad run hurts only itself."""
        if not finished and not claimed:
            return Done()
        before = connection.connection
        try:
            done = self._in_transaction(finished, claimed)
        except Exception as error:
            if isinstance(error, Error) and connection.connection is not before:
                return Done(again=list(finished), broken=error)
            if len(finished) + len(claimed) == 1:
                return self._alone(finished, claimed, error)
            return self._one_by_one(finished, claimed)
        if finished:
            failpoints.hit("settle.committed")
        if done.calls:
            failpoints.hit("intent.committed")
        return done

    def _one_by_one(self, finished: Sequence[Finished], claimed: Sequence[Claimed]) -> Done:
        """What was committed before the connection broke keeps its effects; what came back is kept for later."""
        done = Done()
        for place, one in enumerate(finished):
            _add(done, self.run([one], []))
            if done.broken is not None:
                done.again += finished[place + 1 :]
                return done
        for each in claimed:
            _add(done, self.run([], [each]))
            if done.broken is not None:
                break
        return done

    def _alone(self, finished: Sequence[Finished], claimed: Sequence[Claimed], error: Exception) -> Done:
        """A single outcome or intent that can't be written: it is settled as failed, so that the run isn't stuck."""
        if isinstance(error, Stale):
            log.warning("stale_settle", what="wave", count=1)
            return Done()
        if isinstance(error, OperationalError):
            return Done(put_backs=[(each, GIVE_WAY) for each in claimed], again=list(finished))
        log.error("alarm", what="wave", error=str(error)[:500])
        if finished and not finished[0].outcome.error.startswith(UNSTORABLE):
            outcome = Outcome.rejected(f"{UNSTORABLE} {type(error).__name__}")
            return self.run([Finished(finished[0].call, outcome)], [])
        return Done()

    def _in_transaction(self, finished: Sequence[Finished], claimed: Sequence[Claimed]) -> Done:
        """Writes a wave and commits it; the transaction also hands back what somebody holds."""
        every = [*(one.call.claimed for one in finished), *claimed]
        done, wave = Done(), Wave()
        with transaction.atomic():
            inside = taking.take(every, self.timers)
            admitted = admission.take(inside, claimed, [one.call.claimed.timer_id for one in finished])
            self._take_in(finished, claimed, inside, wave, done, admitted)
            change_runs(inside, wave)
            wave.write()
            if finished:
                failpoints.hit("settle.before_commit")
            self.timers.write(wave.timers)
            self.timers.settle(wave.settlements)
            self.timers.hold(wave.held)
            self.timers.shelve(wave.shelved)
            self.timers.wait(wave.waiting)
        done.places = admitted.passed_by(claimed) | turns.given_back(finished)
        done.heard |= {event.tenant_id for event in wave.events}
        failing.judge(wave.failed)
        return done

    def _take_in(
        self,
        finished: Sequence[Finished],
        claimed: Sequence[Claimed],
        inside: taking.InHand,
        wave: Wave,
        done: Done,
        admitted: Admission,
    ) -> None:
        """Puts into the wave what is still ours; the outcome of a lease that is gone is forgotten and counted."""
        stale = [one for one in finished if one.call.claimed.timer_id not in inside.ours]
        if stale:
            log.warning("stale_settle", what="wave", count=len(stale))
        for one in finished:
            if one not in stale:
                self._came_back(one, inside, wave)
        for each in claimed:
            if each.timer_id in inside.ours:
                self._claimed(each, inside, wave, done, admitted)

    def _came_back(self, one: Finished, inside: taking.InHand, wave: Wave) -> None:
        claimed = one.call.claimed
        if claimed.kind == "deliver":
            delivery.settle(one.call, one.outcome, wave, now=inside.now)
            return
        (row, run), step = inside.of(claimed), inside.step(claimed)
        if row is None or run is None or step is None or step.row is None or step.row.state != "running":
            wave.settlements.append(_gone(claimed))
            return
        outcome = came_back(Finished(one.call, one.outcome.cleaned()), step, wave)
        if outcome.state in ("retry", "timeout") and (admission.was_a_trial(one.call) or outcome.error == FENCED):
            # Nothing was sent, or it waited for a system that is down, and was chosen to try it: no attempt is used up.
            step.row = replace(step.row, retried_at_attempt=step.row.retried_at_attempt + 1)
            wave.uncounted.append(step.id)
        if outcome.state not in ("done", "skipped") and is_to_end(row, run):
            # Also after a refusal: nobody may retry it any more, so it must not become a dead letter.
            cancel_now(row, run, step.row, wave, as_asked(row))
            wave.settlements.append(_gone(claimed))
            return
        final = "delivery_unknown" if outcome.state == "uncertain" else ""
        follow_up = (
            self.advance.fail(run, step, outcome, wave, reason=final)
            if final
            else self.advance.after_attempt(run, step, outcome, wave)
        )
        self._settle(claimed, follow_up, wave, run)

    def _claimed(self, claimed: Claimed, inside: taking.InHand, wave: Wave, done: Done, admitted: Admission) -> None:
        if claimed.kind == "deliver":
            self._deliver(claimed, inside, wave, done)
            return
        (row, run), step = inside.of(claimed), inside.step(claimed)
        if row is None:
            wave.settlements.append(_gone(claimed))
            return
        step_row = inside.step_row(claimed)
        held = held_back(row, run if step is not None else None, step_row, lane_paused=row.lane_paused)
        if held is not None or run is None or step is None:
            wave.settlements.append(let_be(claimed, held, row, run, step_row, wave, now=inside.now))
        elif claimed.kind == "delay":
            write_step(wave, run, step, "succeeded", ended=True)
            run.state, run.reason = "running", ""
            self._settle(claimed, self.advance.enter(run, step.node.next, wave), wave, run)
        else:
            self._intend(claimed, run, step, wave, done, admitted.admit(run, step, claimed))

    def _deliver(self, claimed: Claimed, inside: taking.InHand, wave: Wave, done: Done) -> None:
        """A mail of a notice; one that took its worker with it too often is given up, as a step would be."""
        is_poison = claimed.lost >= self.conf.lost_limit
        call = delivery.begin(claimed, wave, now=inside.now, timeout=self.conf.step_timeout, is_poison=is_poison)
        done.calls += [call] if call else []

    def _intend(
        self, claimed: Claimed, run: RunInHand, step: StepInHand, wave: Wave, done: Done, held: PutBack | None
    ) -> None:
        decision = held or self.execute.intend(run, step, claimed, wave)
        if isinstance(decision, Intended):
            done.calls.append(decision.call)
        elif isinstance(decision, PutBack):
            wave.settlements.append(_untouched(claimed, decision, now=run.now))
            wave.shelve(claimed.tenant_id, decision.shelf, claimed.step_id)
            wave.waiting += [Waiting(claimed.timer_id, decision.place)] if decision.place is not None else []
            run.reason = decision.reason or run.reason
        elif isinstance(decision, Ended):
            follow_up = (
                self.advance.fail(run, decision.step, decision.outcome, wave, reason=decision.final)
                if decision.final
                else self.advance.after_attempt(run, decision.step, decision.outcome, wave)
            )
            self._settle(claimed, follow_up, wave, run)

    def _settle(self, claimed: Claimed, follow_up: FollowUp, wave: Wave, run: RunInHand) -> None:
        if follow_up == GONE:
            wave.settlements.append(_gone(claimed))
            return
        if run.was == "paused":
            run.state = "paused"
            wave.held.append(claimed.timer_id)
        kind, due_at = follow_up.kind, follow_up.due_at or run.now
        wave.settlements.append(Settlement(claimed.timer_id, claimed.lease_seq, kind, due_at, follow_up.step_id))


UNSTORABLE = "The outcome could not be stored:"


def let_be(
    claimed: Claimed,
    held: PutBack | Drop | Cancel | None,
    row: RunRow,
    run: RunInHand | None,
    step: StepRow | None,
    wave: Wave,
    *,
    now: datetime,
) -> Settlement:
    """What becomes of the timer of a step that isn't to be executed; the run shows why, or ends."""
    if isinstance(held, PutBack):
        _change_run(row, run, row.state, held.reason or row.reason, wave)
        wave.held += [claimed.timer_id] if held.hold else []
        wave.shelve(claimed.tenant_id, held.shelf, claimed.step_id)
        return _untouched(claimed, held, now=now)
    if isinstance(held, Cancel) and step is not None:
        cancel_now(row, run, step, wave, held)
    return _gone(claimed)


def cancel_now(row: RunRow, run: RunInHand | None, step: StepRow, wave: Wave, how: Cancel) -> None:
    """Ends a run at a check that its step passes, as was asked. An attempt still open is one that was lost."""
    if step.open_attempt:
        wave.closed.append(ClosedAttempt(step.id, step.attempts, "lost", LOST))
    wave.steps.append(
        StepChange(
            step_id=step.id,
            was=step.state,
            state="cancelled",
            reason=how.reason,
            attempts=step.attempts,
            effect_state="uncertain" if step.effect_state == "intended" else step.effect_state,
            ended=True,
        )
    )
    _change_run(row, run, how.state, how.reason, wave)


def _change_run(row: RunRow, run: RunInHand | None, state: str, reason: str, wave: Wave) -> None:
    """Of a run in hand the change is written with all others of it; one that can't be read has no other."""
    if run is not None:
        run.state, run.reason = state, reason
    elif (state, reason) != (row.state, row.reason):
        wave.runs.append(RunChange(row.id, row.state, state, reason))


def _add(done: Done, more: Done) -> None:
    done.calls += more.calls
    done.put_backs += more.put_backs
    done.again += more.again
    done.heard |= more.heard
    done.places |= more.places
    done.broken = more.broken


def _untouched(claimed: Claimed, held: PutBack, *, now: datetime) -> Settlement:
    return Settlement(claimed.timer_id, claimed.lease_seq, UNTOUCHED, now + timedelta(seconds=held.seconds), None)


def _gone(claimed: Claimed) -> Settlement:
    return Settlement(claimed.timer_id, claimed.lease_seq, None, None, None)


def change_runs(inside: taking.InHand, wave: Wave) -> None:
    """One change a run, however many of its steps the wave touched; rules may listen to those that end."""
    add_ended(wave, inside.runs.values())
    for run in inside.runs.values():
        if run.state != run.was and not may_move(RUN_MOVES, run.was, run.state):
            continue
        if run.state != run.was or run.reason != inside.rows[run.id].reason:
            wave.runs.append(RunChange(run.id, run.was, run.state, run.reason))
