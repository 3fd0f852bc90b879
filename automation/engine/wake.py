"""Wakes lanes whose time has come, and does the chores: reaps, heals and repairs."""

import time
import uuid
from dataclasses import dataclass, field

import structlog

from automation import failpoints
from automation.conf import Conf
from automation.engine.operate.pause import heal_pauses
from automation.engine.turns import give_all_places
from automation.engine.upkeep import Upkeep
from automation.store import timers

log = structlog.get_logger(__name__)
SUSPICIOUS_SHARE = 0.2
SHELVES_EVERY = 6  # rounds: each of them is looked at
HELD_SWEEPS = 3  # so long one that died or froze amid the chores keeps others from them


@dataclass(slots=True)
class Sweeper:
    """Does the chores when it is their turn; one process at a time has them, by a row that expires."""

    worker: uuid.UUID
    conf: Conf
    upkeep: Upkeep = field(init=False)
    _asked_at: float = field(default_factory=lambda: -1e9)
    _answered_at: float | None = None
    _reap_from: float = -1e9
    _suspected: bool = False
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.upkeep = Upkeep(self.conf)

    def due(self) -> bool:
        """Whether it is time to ask for the chores again."""
        return time.monotonic() - self._asked_at >= self.conf.sweep

    def run(self) -> None:
        """Asks for the chores and, when they are ours, does them."""
        self._asked_at = time.monotonic()
        since = timers.take_sweep(
            "engine", holder=self.worker, every=self.conf.sweep * 0.8, hold=self.conf.sweep * HELD_SWEEPS
        )
        self._guard(since)
        if since is None:
            return
        try:
            if time.monotonic() >= self._reap_from and self._believable():
                self._reap()
            self._heal()
            give_all_places()
            heal_pauses(shelves_too=self._rounds % SHELVES_EVERY == 0)
            self._rounds += 1
            self.upkeep.run()
        finally:
            timers.end_sweep("engine", holder=self.worker)

    def _guard(self, since: float | None) -> None:
        """After an outage the leases are old for everyone: one whole lease passes before any is taken away.

        It shows as a time in which this process asked and got no answer, or, at its start, in which nobody swept.
        """
        answered_at, self._answered_at = self._answered_at, time.monotonic()
        quiet = since if answered_at is None else self._answered_at - answered_at
        bearable = max(self.conf.lease / 3, 2 * self.conf.sweep)
        if quiet is not None and (quiet < 0 or quiet > bearable):
            self._reap_from = time.monotonic() + self.conf.lease

    def _believable(self) -> bool:
        """Many workers lost at once are an alarm, and believed only the second time."""
        workers, expired = timers.expired_workers()
        many = expired >= 2 and expired > workers * SUSPICIOUS_SHARE
        if many and not self._suspected:
            self._suspected = True
            log.error("alarm", what="many workers lost", workers=workers, expired=expired)
            return False
        self._suspected = many
        return True

    def _reap(self) -> None:
        failpoints.hit("reap.selected")
        taken = timers.reap()
        if taken:
            log.warning("reaped", count=len(taken), timers=[one[0] for one in taken[:20]])

    def _heal(self) -> None:
        for what, count in (("lanes", timers.heal_lanes()), ("match", timers.heal_match())):
            if count:
                log.warning("healed", what=what, count=count)
        for lane_id, was, really in timers.repair_running():
            log.error("repaired", lane_id=lane_id, was=was, really=really)
            log.error("alarm", what="lane counter", lane_id=lane_id, was=was, really=really)


@dataclass(slots=True)
class Waker:
    """Flips lanes whose earliest timer has fallen due: one index probe when there is none."""

    every: float
    _at: float = -1e9

    def run(self) -> None:
        """Wakes, if it is time."""
        now = time.monotonic()
        if now - self._at >= self.every:
            self._at = now
            timers.wake()
