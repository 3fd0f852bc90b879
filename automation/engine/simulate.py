"""The in-process runner: the same cycle with a clock that jumps, a heap of timers, and captured effects."""

import heapq
import itertools
import random
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from automation.catalog.action import Outcome
from automation.conf import Conf, load
from automation.engine import capture
from automation.engine.cycle import Cycle
from automation.engine.effects import EffectCall, Finished
from automation.engine.ports import Work
from automation.store import claims, runs, timers
from automation.store.claims import Begun, Claimed, Settlement
from automation.store.places import Waiting
from automation.store.shelves import Shelved
from automation.store.timers import NewTimer
from automation.store.waves import Stale

Script = Callable[[EffectCall], Outcome]
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MOST_TURNS = 100_000


def succeed(call: EffectCall) -> Outcome:
    """The plain answer: it was done."""
    return Outcome.done({"captured": True})


@dataclass
class HeapTimers(Work):
    """Timers in memory, so that hot tables get no dead rows; nobody else claims, so every lease stands."""

    clock: datetime = START
    worker: uuid.UUID = field(default_factory=uuid.uuid4)
    _due: list[tuple[datetime, int]] = field(default_factory=list)
    _rows: dict[int, Claimed] = field(default_factory=dict)
    _match: dict[int, int] = field(default_factory=dict)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def now(self) -> datetime:
        """The runner's own time."""
        return self.clock

    def arm(self, tenant_id: int) -> None:
        """Makes sure that the tenant has a match timer."""
        if tenant_id not in self._match:
            self._match[tenant_id] = self._add(NewTimer(tenant_id, "match", None))

    def adopt(self, tenant_id: int) -> None:
        """Takes over what verbs of people have written to the database."""
        for timer in timers.take_over(tenant_id):
            if timer.kind == "match":
                self.arm(tenant_id)
            else:
                self._add(timer)

    def next(self) -> Claimed | None:
        """Takes the timer that is due first, moving the clock to it; None when none is left."""
        while self._due:
            due_at, timer_id = heapq.heappop(self._due)
            row = self._rows.get(timer_id)
            if row is None or row.deadline_at != due_at:
                continue
            self.clock = max(self.clock, due_at)
            kind, action = runs.kind_of(row.step_id) if row.step_id else ("", "")
            claimed = replace(
                row,
                lease_seq=row.lease_seq + 1,
                deliveries=row.deliveries + 1,
                claimed_at=self.clock,
                step_kind=kind,
                action=action,
            )
            self._rows[timer_id] = claimed
            return claimed
        return None

    def pending(self) -> list[tuple[datetime, str]]:
        """(due, kind) of what waits, in the order in which it will come."""
        return sorted((row.deadline_at, row.kind) for row in self._rows.values())

    def begin(self, claimed: Sequence[Claimed]) -> tuple[datetime, set[int]]:
        """The runner's time, and all that weren't settled already."""
        return self.clock, {one.timer_id for one in claimed if one.timer_id in self._rows}

    def begin_match(self, claimed: Claimed, *, runs: int) -> Begun:
        """The flags of the tenant and ids from the database, at the runner's time."""
        begun = claims.begin_match(self.worker, claimed, runs=runs)
        return begun._replace(ours=claimed.timer_id in self._rows, now=self.clock)

    def write(self, new: Sequence[NewTimer]) -> None:
        """Sets new timers."""
        for timer in new:
            self._add(timer)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Deletes timers or puts them back."""
        for one in settlements:
            row = self._rows.pop(one.timer_id, None)
            if row is None:
                raise Stale
            if one.kind is not None:
                kept = replace(row, kind=one.kind or row.kind, step_id=one.step_id or row.step_id, lost=0)
                self._put(replace(kept, deliveries=0 if one.step_id else kept.deliveries), one.due_at or self.clock)

    def hold(self, timer_ids: Sequence[int]) -> None:
        """Gives timers of paused runs to the database, where the verb that lets them go on finds them."""
        rows = [self._rows.pop(one) for one in timer_ids]
        if rows:
            timers.set_timers(
                [NewTimer(row.tenant_id, row.kind, row.deadline_at, row.run_id, row.step_id) for row in rows]
            )
            timers.hold_runs([row.run_id for row in rows if row.run_id is not None])

    def shelve(self, shelved: Sequence[Shelved]) -> None:
        """Nothing: there are no claims to be saved, and what is put off comes again by itself."""

    def wait(self, waiting: Sequence[Waiting]) -> None:
        """Nothing: what waits comes again by itself."""

    def give(self, connection_ids: Collection[int]) -> None:
        """Nothing: nobody waits for the places of a run that is alone."""

    def settle_match(
        self, claimed: Claimed, *, more: bool, charge: int = 0, not_before: datetime | None = None
    ) -> bool:
        """Ends a matcher's turn; it comes back while more is left."""
        row = self._rows.pop(claimed.timer_id)
        if more:
            self._put(row, not_before or self.clock)
        else:
            del self._match[claimed.tenant_id]
        return True

    def put_back(self, claimed: Claimed, *, due_at: datetime) -> bool:
        """Hands a timer back untouched."""
        self._put(self._rows.pop(claimed.timer_id), due_at)
        return True

    def _add(self, timer: NewTimer) -> int:
        timer_id = next(self._ids)
        due_at = timer.due_at or self.clock
        row = Claimed(
            timer_id, 0, timer.tenant_id, timer.kind, timer.run_id, timer.step_id, timer.subject_id,
            0, 0, 0, due_at, 0, 0, self.clock,
        )  # fmt: skip
        self._put(row, due_at)
        return timer_id

    def _put(self, row: Claimed, due_at: datetime) -> None:
        self._rows[row.timer_id] = replace(row, deadline_at=due_at)
        heapq.heappush(self._due, (due_at, row.timer_id))


@dataclass(slots=True)
class CapturedEffects:
    """Takes every effect, keeps it, and answers as the script says; nothing goes out and no connection is reachable."""

    script: Script = succeed
    calls: list[EffectCall] = field(default_factory=list)
    _done: list[Finished] = field(default_factory=list)

    def free(self) -> int:
        """Always room for one more."""
        return 1

    def submit(self, call: EffectCall) -> None:
        """Keeps the call and its scripted outcome."""
        self.calls.append(call)
        self._done.append(Finished(call, self.script(call)))

    def finished(self) -> list[Finished]:
        """What the script answered since the last time."""
        done, self._done = self._done, []
        return done


@dataclass(slots=True)
class Runner:
    """Runs a tenant's events to their end in this process, in the transaction of its caller."""

    script: Script = succeed
    conf: Conf = field(default_factory=load)
    seed: int = 0
    timers: HeapTimers = field(default_factory=HeapTimers)
    effects: CapturedEffects = field(init=False)
    cycle: Cycle = field(init=False)

    def __post_init__(self) -> None:
        self.effects = CapturedEffects(self.script)
        self.cycle = Cycle(
            self.timers,
            self.effects,
            self.conf,
            armed=self.timers.arm,
            rng=random.Random(self.seed),  # noqa: S311 the jitter of a rehearsal, the same each time
        )

    def run(self, tenant_id: int, *, until: datetime | None = None) -> None:
        """Matches what is unmatched and works until nothing is left, or nothing before `until`.

        Raises RuntimeError for work that doesn't end: the loop guard should have.
        """
        self.timers.arm(tenant_id)
        for _ in range(MOST_TURNS):
            waiting = self.timers.pending()
            if until is not None and (not waiting or waiting[0][0] > until):
                self.timers.clock = max(self.timers.clock, until)
                return
            claimed = self.timers.next()
            if claimed is None:
                return
            capture.begin_anew()
            self.cycle.turn([claimed])
            while self.cycle.turn([]):
                pass
        raise RuntimeError(f"the runner took {MOST_TURNS} turns and isn't done")

    def pass_time(self, tenant_id: int, span: timedelta) -> None:
        """Lets time go by and does what falls due meanwhile."""
        self.run(tenant_id, until=self.timers.clock + span)
