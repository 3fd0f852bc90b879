"""Lets steps through to their connections: a few at a time, one alone where the system was down, none while it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from automation.catalog.action import Effect
from automation.core.breaker import CLOSED, HALF_OPEN, OFF, OPEN
from automation.engine.effects import EffectCall
from automation.engine.holding import PUT_OFF, PutBack, held_back
from automation.engine.progress import RunInHand, StepInHand
from automation.engine.taking import InHand
from automation.models import Connection
from automation.store import breakers, places
from automation.store.breakers import Known
from automation.store.claims import Claimed

DOWN = "endpoint_down"
OFF_WAIT = 3600.0  # seconds; who switches the connection on again hurries what waits
SPREAD = 50  # what waits for the same moment comes back within five seconds, a tenth apart
TRIAL_LOOK = 5.0  # who comes while a system is being tried looks again soon: whether it succeeded is known by then


@dataclass(slots=True)
class Admission:
    """Who of one wave may go on: what the database said under the connections' locks, and whom the wave let through."""

    now: datetime
    known: dict[int, Known] = field(default_factory=dict)
    trying: set[int] = field(default_factory=set)  # may be tried by one step of this wave
    room: dict[int, int] = field(default_factory=dict)  # places left of those that have a limit
    turns: dict[int, set[int]] = field(default_factory=dict)  # timers that are to have the next ones, before any other
    held: set[int] = field(default_factory=set)  # connections with places, of steps that are held or have nothing to do

    def admit(self, run: RunInHand, step: StepInHand, claimed: Claimed) -> PutBack | None:
        """Why the step must wait for its connection, or None; a step that waits uses up no attempt."""
        if _is_settled_anyway(step):
            return None
        found = connections_of(run, step)
        if _paused(run, found):
            return None  # it is put back all the same, with another reason
        held = (self._down(connection, run.id) or self._full(connection, claimed) for connection in found)
        why = next((one for one in held if one is not None), None)
        if why is None:
            self._taken(found, claimed)
        return why

    def passed_by(self, claimed: Sequence[Claimed]) -> set[int]:
        """The connections with whom a claimed step may have had its turn and didn't take it: the next one may."""
        return self.held | {pk for pk, turns in self.turns.items() if any(each.timer_id in turns for each in claimed)}

    def _taken(self, found: Sequence[Connection], claimed: Claimed) -> None:
        """The step is let through: it has a place with each of its connections, and is the one that tries it."""
        for connection in found:
            self.trying.discard(connection.pk)
            if connection.pk in self.room:
                self.room[connection.pk] -= 1
                self.turns[connection.pk].discard(claimed.timer_id)

    def _down(self, connection: Connection, run_id: int) -> PutBack | None:
        known = self.known.get(connection.pk)
        state, until = (known.breaker, known.until) if known else (connection.breaker, connection.breaker_until)
        if state == CLOSED:
            return None
        if state == OFF:
            return PutBack(OFF_WAIT, DOWN)
        if connection.pk in self.trying:
            return None
        wait = (until - self.now).total_seconds() if until is not None else 0.0
        wait = min(wait, TRIAL_LOOK) if state == HALF_OPEN else wait
        return PutBack(max(wait, 1.0) + run_id % SPREAD / 10, DOWN)

    def _full(self, connection: Connection, claimed: Claimed) -> PutBack | None:
        room = self.room.get(connection.pk)
        turns = self.turns.get(connection.pk, set[int]())
        if room is None or room > (0 if claimed.timer_id in turns else len(turns)):
            return None
        return PutBack(PUT_OFF, DOWN, place=connection.pk)


def take(inside: InHand, claimed: Sequence[Claimed], settling: Sequence[int]) -> Admission:
    """Who may go on of these claimed steps, in the transaction that writes their intents.

    Where no connection has a limit and none is due to be tried again it asks the database nothing. `settling` are the
    timers whose outcomes the same transaction writes: their places are free.
    """
    admission, wanted = Admission(inside.now), dict[int, Connection]()
    for each in claimed:
        found = _named(inside, each)
        if _is_held(inside, each, found):
            admission.held |= {one.pk for one in found if one.concurrency is not None}
        else:
            wanted |= {one.pk: one for one in found if _asks(one, inside.now)}
    if not wanted:
        return admission
    admission.known = breakers.lock(list(wanted))
    admission.trying = {
        known.id for known in admission.known.values() if _may_be_tried(known.breaker, known.until, inside.now)
    }
    if admission.trying:
        breakers.try_again(list(admission.trying), now=inside.now)
        admission.known = {
            pk: known._replace(until=inside.now + breakers.PROBE) if pk in admission.trying else known
            for pk, known in admission.known.items()
        }
    limits = {
        pk: one.concurrency for pk, one in wanted.items() if one.concurrency is not None and pk in admission.known
    }
    if limits:
        # A claimed step whose worker died amid its call isn't in its own way.
        apart = [*settling, *(each.timer_id for each in claimed)]
        for pk, busy, turns in places.taken(list(limits), apart=apart):
            admission.room[pk], admission.turns[pk] = limits[pk] - busy, set(turns)
    return admission


def _named(inside: InHand, each: Claimed) -> list[Connection]:
    """The connections that a claimed step uses; none of one that isn't ours, or that this process can't read."""
    row, run, step = inside.rows.get(each.run_id or 0), inside.runs.get(each.run_id or 0), inside.step(each)
    if row is None or run is None or step is None or each.timer_id not in inside.ours:
        return []
    return connections_of(run, step) if row.tenant_id == each.tenant_id else []


def _is_held(inside: InHand, each: Claimed, found: Sequence[Connection]) -> bool:
    """Whether a claimed step is put back or dropped anyway, and so tries nothing and takes no place."""
    if not found:
        return True
    row, run = inside.rows[each.run_id or 0], inside.runs[each.run_id or 0]
    return _paused(run, found) or held_back(row, run, inside.step_row(each), lane_paused=row.lane_paused) is not None


def _paused(run: RunInHand, found: Sequence[Connection]) -> bool:
    return any(one.name in run.tenant.paused_connections for one in found)


def connections_of(run: RunInHand, step: StepInHand) -> list[Connection]:
    """The tenant's connections that a step names, those that are gone left out."""
    found = (run.tenant.connections.get(name) for name in run.rule.connection_names(step.node))
    return [one for one in found if one is not None]


def was_a_trial(call: EffectCall) -> bool:
    """Whether a call was let through to find out whether a system that was down answers again."""
    return any(one.breaker != CLOSED for one in call.door.connections.values())


def _asks(connection: Connection, now: datetime) -> bool:
    due = _may_be_tried(connection.breaker, connection.breaker_until, now)
    return connection.concurrency is not None or due


def _may_be_tried(state: str, until: datetime | None, now: datetime) -> bool:
    """Also a try that nobody brought back in time is made again."""
    return state in (OPEN, HALF_OPEN) and (until is None or until <= now)


def _is_settled_anyway(step: StepInHand) -> bool:
    """Whether an attempt that its worker left open ends the step: then nothing is sent."""
    row = step.row
    return row is not None and row.open_attempt and step.node.effect == Effect.AT_MOST_ONCE
