"""Retention as a chore of the workers: a slice of time every few seconds, one process at a time."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog
from django.db import InterfaceError, InternalError, OperationalError

from automation import queue
from automation.conf import Conf
from automation.engine.giving_way import met_a_lock
from automation.engine.retention.portions import Portion
from automation.engine.retention.rounds import round_of
from automation.engine.retention.terms import FAILURES_KEPT, PAGE, PAUSES_KEPT
from automation.store import clock, retention, timers
from automation.store import retention_rounds as rounds

log = structlog.get_logger(__name__)
NAME = "retention"
SLICE = 0.2  # seconds; a batch that has begun is ended
HELD_SWEEPS = 3  # so long one that died amid its turn keeps others from it


@dataclass(slots=True)
class RetentionChore:
    """Goes through the tenants, the one whose last round is the longest ago first; between slices the pump works."""

    worker: uuid.UUID
    conf: Conf
    _asked_at: float = field(default_factory=lambda: -1e9)
    _round: Iterator[Portion] | None = None
    _tenant_id: int = 0
    _holds: bool = False
    _removed: "Counter[str]" = field(default_factory=Counter)
    _forgot_at: float = field(default_factory=lambda: -1e9)

    def due(self) -> bool:
        """Whether it is time for another slice."""
        return self.conf.retention > 0 and time.monotonic() - self._asked_at >= self.conf.sweep

    def run(self) -> None:
        """Does a slice, if the chore is ours or nobody's."""
        self._asked_at = time.monotonic()
        if not self._take():
            return
        ends_at = time.monotonic() + SLICE
        while True:
            if self._round is None and not self._next_tenant():
                self.leave()
                return
            if not self._batch():
                self._end_round()
            if time.monotonic() >= ends_at:
                return

    def leave(self) -> None:
        """Gives the chore to whoever asks next; a round that isn't over is gone on with by them."""
        self._round = None
        if self._holds:
            timers.end_sweep(NAME, holder=self.worker)
            self._holds = False

    def _batch(self) -> bool:
        """One batch; False at the end of the round. What fails is told, and this tenant's turn is over."""
        try:
            done = next(self._round, None) if self._round is not None else None
        except (OperationalError, InterfaceError, InternalError) as error:
            if not met_a_lock(error):
                raise
            return False  # this tenant comes next again
        except Exception as error:  # whatever it is, also of a host's own `pruned`: the others have their turns
            log.exception("alarm", what="retention", tenant_id=self._tenant_id, error=str(error)[:500])
            rounds.finish(self._tenant_id)
            return False
        self._removed.update(done.removed if done is not None else {})
        return done is not None

    def _take(self) -> bool:
        hold = self.conf.sweep * HELD_SWEEPS
        if self._holds:
            self._holds = rounds.keep_sweep(NAME, holder=self.worker, hold=hold)
            if not self._holds:
                self._round = None
        else:
            self._holds = (
                timers.take_sweep(NAME, holder=self.worker, every=self.conf.sweep * 0.8, hold=hold) is not None
            )
            if self._holds and time.monotonic() - self._forgot_at >= self.conf.retention:
                self._forgot_at = time.monotonic()
                forget()
        return self._holds

    def _next_tenant(self) -> bool:
        tenant_id = rounds.next_tenant(every=self.conf.retention)
        if tenant_id is None:
            return False
        self._round, self._tenant_id = round_of(tenant_id), tenant_id
        self._removed.clear()
        return True

    def _end_round(self) -> None:
        self._round = None
        if self._removed:
            log.info("pruned", tenant_id=self._tenant_id, removed=dict(self._removed))


def forget() -> int:
    """A page of what belongs to no tenant, or to all: old pauses, and the task queue's own failures."""
    now = clock.now()
    gone = retention.drop_pauses(before=now - PAUSES_KEPT, limit=PAGE)
    return gone + queue.forget_failures(before=now - FAILURES_KEPT, limit=PAGE)
