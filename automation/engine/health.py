"""Watches how calls of connections end, opens and closes their breakers, and tells people."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from django.db import transaction

from automation.core import breaker
from automation.engine import reached
from automation.engine.effects import ConnectionValues, Finished
from automation.engine.notices import connection_down_notice, connection_off_notice, tell
from automation.engine.threads import FENCED
from automation.store import breakers, clock, pauses, timers
from automation.store.breakers import Call

log = structlog.get_logger(__name__)
ANSWERED = frozenset({"done", "skipped", "rejected"})  # a refusal, too, comes from a system that is there
WRITTEN_EVERY = 10.0  # seconds between two notes of successes
HURRIED_AT_ONCE = 1000


@dataclass(slots=True)
class Health:
    """What one pump has seen. Successes are written now and then, failures at once; all after the wave's commit."""

    now: Callable[[], datetime]
    on: bool = True  # the lab's switch
    _ok: Counter[int] = field(default_factory=Counter)
    _written_at: float = -1e9

    def note(self, finished: Iterable[Finished]) -> None:
        """Counts outcomes that have been settled. Breakers open here, and close when a try succeeded."""
        if not self.on:
            return
        failed: dict[tuple[int, str], tuple[Finished, ConnectionValues]] = {}
        back: list[tuple[int, int]] = []
        for one in finished:
            answered, failing = _told_apart(one)
            for used in answered:
                self._ok[used.id] += 1
                back += [(one.call.claimed.tenant_id, used.id)] if used.breaker != breaker.CLOSED else []
            for used in failing:
                failed[used.id, one.call.door.record_key] = (one, used)
        if failed or back or (self._ok and time.monotonic() - self._written_at >= WRITTEN_EVERY):
            self._write(list(failed.values()), back)

    def _write(self, failed: Sequence[tuple[Finished, ConnectionValues]], back: Sequence[tuple[int, int]]) -> None:
        now = self.now()
        calls = [Call(pk, ok=True, calls=count, record="", error="") for pk, count in self._ok.items()]
        calls += [
            Call(used.id, ok=False, calls=1, record=one.call.door.record_key[:120], error=one.outcome.error[:500])
            for one, used in failed
        ]
        breakers.note(calls, now=now)
        self._ok.clear()
        self._written_at = time.monotonic()
        for tenant_id, connection_id in dict.fromkeys(back):
            came_back(tenant_id, connection_id)
        for one, used in {used.id: (one, used) for one, used in failed}.values():
            _judge(one.call.claimed.tenant_id, used, one.outcome.error, now=now)


def _told_apart(one: Finished) -> tuple[list[ConnectionValues], list[ConnectionValues]]:
    """The connections of a step that answered, and those that didn't: of several calls only the last one failed.

    All that the step names where it isn't known which of them it called.
    """
    door = one.call.door
    called = list(dict.fromkeys(door.called)) or list(door.connections)
    if one.outcome.state in ANSWERED:
        return [door.connections[name] for name in called], []
    if one.outcome.error == FENCED:
        return [], []
    to_blame = door.called[-1:] or called
    answered = [name for name in called if name not in to_blame]
    return [door.connections[name] for name in answered], [door.connections[name] for name in to_blame]


def came_back(tenant_id: int, connection_id: int) -> bool:
    """Closes the breaker of a connection; what waited for it goes on, as fast as lane and connection allow."""
    with transaction.atomic():
        closed = breakers.close(connection_id)
        if closed:
            log.info("connection up", tenant_id=tenant_id, connection_id=connection_id)
            pauses.bump_rules(tenant_id)
    if closed:
        # A worker does this between its turns. The rest comes by itself, at the time at which it wanted to look again.
        hurry(tenant_id, most=HURRIED_AT_ONCE)
    return closed


def hurry(tenant_id: int, *, most: int | None = None) -> None:
    """Makes what waits for an outside system due now, the oldest `most` of it, in batches of a transaction each."""
    waiting = breakers.waiting(tenant_id, most=most)
    for start in range(0, len(waiting), HURRIED_AT_ONCE):
        with transaction.atomic():
            timers.hurry(tenant_id, waiting[start : start + HURRIED_AT_ONCE])


def forget_old_calls() -> int:
    """Deletes what breakers no longer look back on; answers how many. A chore of the workers."""
    return breakers.forget_old(now=clock.now())


def _judge(tenant_id: int, used: ConnectionValues, error: str, *, now: datetime) -> None:
    """Opens a breaker where enough has failed, for longer where a try failed, for good after a day."""
    if used.breaker != breaker.CLOSED:
        _tried_in_vain(tenant_id, used, error, now=now)
        return
    failing, succeeding = breakers.window(used.id, now=now)
    if not breaker.opens(failing=failing, succeeding=succeeding):
        return
    with transaction.atomic():
        if breakers.open_(used.id, error=error, now=now):
            log.error("alarm", what="connection down", tenant_id=tenant_id, connection=used.name, error=error[:200])
            tell([connection_down_notice(tenant_id=tenant_id, connection=used.name, error=error, now=now)])
            pauses.bump_rules(tenant_id)


def _tried_in_vain(tenant_id: int, used: ConnectionValues, error: str, *, now: datetime) -> None:
    with transaction.atomic():
        state = breakers.still_down(used.id, error=error, now=now)
        if state == breaker.OFF:
            log.error("alarm", what="connection off", tenant_id=tenant_id, connection=used.name, error=error[:200])
            tell([connection_off_notice(tenant_id=tenant_id, connection=used.name, error=error, now=now)])
            reached.write(tenant_id, "failing_connection", connection=used.name, error=error)
        if state:
            pauses.bump_rules(tenant_id)
