"""What django-q2 calls: the pump, which claims due timers and works them off until its budget ends."""

import gc
import os
import random
import socket
import time
import uuid
from dataclasses import dataclass, field

import structlog
from django.db import Error, connection

from automation import failpoints, queue
from automation.catalog.fingerprint import fingerprint
from automation.conf import Conf, load
from automation.engine.arming import arm
from automation.engine.backtest_chore import BacktestChore
from automation.engine.cycle import AWAY, Cycle
from automation.engine.lease import Lease
from automation.engine.ports import LaneTimers
from automation.engine.restored import pause_if_restored
from automation.engine.retention.chore import RetentionChore
from automation.engine.tending import Tending
from automation.engine.threads import ThreadDoor
from automation.engine.wake import Sweeper, Waker
from automation.engine.workplace import Claimed, adopt, cancelled, claim, dismiss, enlist, let_out, settle_in
from tenants.context import every_tenant

log = structlog.get_logger(__name__)
HUNG_EXIT = 71
FLOOR_STRIDES = 10 * 1000
RELEASE = "2"  # with shelves


def pump() -> str:
    """Runs one pump in this process; a bell that finds the pool complete returns at once. Answers why it ended."""
    if queue.stopping():
        return "stopping"
    group = os.getpgid(0)
    if len(queue.of_group(queue.live(queue.pool()), group)) >= queue.workers():
        return "complete"
    conf = load()
    # What is loaded by now stays: the collector needn't look through it again and again.
    gc.collect()
    gc.freeze()
    ends_at = time.monotonic() + conf.pump_budget
    with every_tenant():
        pause_if_restored()
        while (ended := Pump(conf, queue.pool(), ends_at).run()) == "lost":
            log.warning("new identity", pool=queue.pool())
    if ended == "budget":
        queue.ring(queue.pool())
    return ended


@dataclass(slots=True)
class Pump:
    """One identity of a worker: a lease, a set of threads, and the loop around them."""

    conf: Conf
    pool: str
    ends_at: float
    worker: uuid.UUID = field(default_factory=uuid.uuid4)
    lease: Lease = field(init=False)
    door: ThreadDoor = field(init=False)
    cycle: Cycle = field(init=False)
    sweeper: Sweeper = field(init=False)
    tending: Tending = field(init=False)
    retention: RetentionChore = field(init=False)
    backtests: BacktestChore = field(default_factory=BacktestChore)
    waker: Waker = field(init=False)
    rng: random.Random = field(default_factory=random.SystemRandom)
    _floor: int = -1
    _floor_at: float = 0.0
    _control_at: float = 0.0
    _look_at: float = 0.0  # when to look for what is let out at a pace
    _paced_until: float = 0.0
    _alone: Claimed | None = None  # a suspect that waits until this process has nothing else to lose
    _solo: bool = False  # a suspect is being worked on: nothing is claimed beside it
    _adopting: bool = False

    def __post_init__(self) -> None:
        self.lease = Lease(self.worker, self.conf)
        self.door = ThreadDoor(self.conf.threads, self.conf.allow_loopback, self.lease.may_start)
        self.cycle = Cycle(
            LaneTimers(self.worker), self.door, self.conf, armed=arm, rng=self.rng, stopping=queue.stopping
        )
        self.sweeper = Sweeper(self.worker, self.conf)
        self.tending = Tending(self.worker, every=self.conf.sweep * 0.8)
        self.retention = RetentionChore(self.worker, self.conf)
        self.waker = Waker(every=self.conf.poll)

    def run(self) -> str:
        """Works until there is a reason to end: stopping, budget, lost. With a hung thread the process leaves."""
        settle_in(self.conf)
        release = f"{RELEASE}-{fingerprint()}"
        enlist(self.worker, pool=self.pool, release=release, host=socket.gethostname(), lease=self.conf.lease)
        log.info("pump started", worker=str(self.worker), pool=self.pool)
        self.lease.start()
        self.door.start()
        try:
            ended = self._loop()
        finally:
            self.lease.stop()
            self.door.close()
        if ended != "lost":
            self._leave()
        log.info("pump ended", worker=str(self.worker), why=ended)
        if ended == "hung":
            os._exit(HUNG_EXIT)
        return ended

    def _leave(self) -> None:
        """Gives back what is left. With the database away the lease runs out by itself, and the reaper sees to it."""
        try:
            self.retention.leave()
            if self._alone is not None:
                self.cycle.timers.put_back(self._alone, due_at=self._alone.claimed_at)
            dismiss(self.worker)
        except Error as error:
            log.warning("database", error=str(error)[:200])
            connection.close()

    def _loop(self) -> str:
        while True:
            why = self._why_end()
            if self.lease.lost:
                self._drop()
                return "lost"
            if why and not self.door.busy() and not self.cycle.unsettled:
                return why
            try:
                if not self._turn(claiming=not why):
                    self.door.bell.wait(self.conf.poll * self.rng.uniform(0.8, 1.2))
            except AWAY as error:
                self._reconnect(error)
            except Exception:
                # A fault of ours: what was claimed stays leased until its deadline, then counts as lost.
                log.exception("alarm", what="turn")
                time.sleep(self.conf.poll)

    def _why_end(self) -> str:
        if queue.stopping():
            return "stopping"
        if self.door.hung:
            return "hung"
        return "budget" if time.monotonic() >= self.ends_at else ""

    def _turn(self, *, claiming: bool) -> bool:
        self.door.bell.clear()
        self.waker.run()
        if self.sweeper.due():
            self.sweeper.run()
            self.tending.run()
        if claiming and self.retention.due():
            self.retention.run()
        self._control()
        claimed = self._claim() if claiming else []
        worked = self.cycle.turn(claimed)
        return (claiming and self.backtests.run(idle=not worked)) or worked

    def _claim(self) -> list[Claimed]:
        if self._adopting:
            self._adopting = False
            return self._apart(self._adopt())
        if self._alone is not None:
            return self._take_alone()
        if self._solo and self.door.busy():
            return []
        self._solo = False
        if self.lease.age() > self.conf.lease - self.conf.fence_margin:
            return []
        free = self.door.free()
        if free == 0 and not self.conf.match_ahead:
            return []
        if time.monotonic() - self._floor_at >= 1.0:
            self._floor, self._floor_at = -1, time.monotonic()
        claimed = claim(
            self.worker,
            self.conf,
            pool=self.pool,
            most=min(free, self.conf.claim_batch) or 1,
            floor=self._floor,
            match_only=free == 0,
        )
        if claimed:
            failpoints.hit("claim.committed")
            self._floor = max(self._floor, min(one.lane_pass for one in claimed) - FLOOR_STRIDES)
        return self._apart(claimed)

    def _adopt(self) -> list[Claimed]:
        """What is leased under this worker's id and not in its hands: the answer to that claim got lost."""
        known = {call.claimed.timer_id for call in self.door.calls()}
        known |= {one.call.claimed.timer_id for one in self.cycle.unsettled}
        known |= {self._alone.timer_id} if self._alone is not None else set()
        return [one for one in adopt(self.worker) if one.timer_id not in known]

    def _apart(self, claimed: list[Claimed]) -> list[Claimed]:
        """Work that took its worker with it twice waits until this process has nothing else to lose."""
        suspects = [one for one in claimed if self.conf.lost_alone <= one.lost < self.conf.lost_limit]
        if not suspects:
            return claimed
        others = [one for one in claimed if one not in suspects]
        if self._alone is None:
            self._alone, others = suspects[0], []
        for one in claimed:
            if one is not self._alone and one not in others:
                self.cycle.timers.put_back(one, due_at=one.claimed_at)
        return others

    def _take_alone(self) -> list[Claimed]:
        if self.door.busy():
            return []
        alone, self._alone, self._solo = self._alone, None, True
        return [alone] if alone is not None else []

    def _control(self) -> None:
        """Once a moment: what goes on at a pace goes on. Has somebody cancelled a run whose effect is on its way?"""
        now = time.monotonic()
        if now >= self._look_at:
            self._let_out(now)
        if now - self._control_at < self.conf.control_poll:
            return
        self._control_at = now
        calls = {call.run_id: call for call in self.door.calls() if call.run_id}
        for run_id in cancelled(list(calls)):
            self.door.shut(calls[run_id])

    def _let_out(self, now: float) -> None:
        """While something is let out it is looked for at every poll, so that it goes evenly; otherwise seldom."""
        if let_out(self.conf, self.worker):
            self._paced_until = now + 2 * self.conf.control_poll
        self._look_at = now + (self.conf.poll if now < self._paced_until else self.conf.control_poll)

    def _drop(self) -> None:
        """This worker was declared dead: its results are worth nothing, whoever took over settles."""
        dropped = len(self.door.calls()) + len(self.cycle.unsettled)
        if dropped:
            log.warning("stale_settle", what="identity", count=dropped)

    def _reconnect(self, error: Exception) -> None:
        log.warning("database", error=str(error)[:200])
        connection.close()
        self._adopting = True
        time.sleep(self.conf.poll)
        try:
            settle_in(self.conf)
        except AWAY:
            connection.close()  # still away: the next turn fails, and comes here again
