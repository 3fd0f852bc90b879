"""Where the cycle gets its timers from and gives them back to: the lanes of the database, under a worker's lease."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from automation.engine.turns import give_places
from automation.store import claims, clock, events, places, runs, shelves, timers
from automation.store.claims import Begun, Claimed, Settlement
from automation.store.events import EventRow
from automation.store.places import Waiting
from automation.store.runs import RunRow
from automation.store.shelves import Shelved
from automation.store.timers import NewTimer
from automation.store.waves import Stale


class Timers(Protocol):
    """The source of timers of a cycle; the in-process runner has one of its own."""

    worker: uuid.UUID

    def now(self) -> datetime:
        """The moment, aware."""

    def begin(self, claimed: Sequence[Claimed]) -> tuple[datetime, set[int]]:
        """The moment, and the ids of those that are still ours; they stay so until the transaction ends."""

    def flags(self, tenant_id: int) -> tuple[bool, bool, int] | None:
        """(paused, hold_new, rules_version) of the tenant."""

    def outbox(self, tenant_id: int, limit: int) -> list[EventRow]:
        """The tenant's oldest events that aren't matched."""

    def lock_runs(self, run_ids: Sequence[int]) -> dict[int, RunRow]:
        """Locks runs, ascending: the first locks of a transaction."""

    def begin_match(self, claimed: Claimed, *, runs: int) -> Begun:
        """Begins a matcher's transaction, which may insert so many runs."""

    def write(self, new: Sequence[NewTimer]) -> None:
        """Sets new timers."""

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Deletes timers or puts them back; the last thing of a transaction. Raises Stale."""

    def hold(self, timer_ids: Sequence[int]) -> None:
        """Holds timers that the transaction has just put back: somebody paused their runs."""

    def shelve(self, shelved: Sequence[Shelved]) -> None:
        """Holds steps whose timers the transaction has just written or put back: something stops them."""

    def wait(self, waiting: Sequence[Waiting]) -> None:
        """Notes for whose place timers wait that the transaction has just put back."""

    def give(self, connection_ids: Collection[int]) -> None:
        """Lets go on what waits for places with these connections, as many as there are; in its own transaction."""

    def settle_match(
        self, claimed: Claimed, *, more: bool, charge: int = 0, not_before: datetime | None = None
    ) -> bool:
        """Ends a matcher's turn."""

    def put_back(self, claimed: Claimed, *, due_at: datetime) -> bool:
        """Hands a timer back untouched."""


class Work:
    """The flags, events and runs of the database."""

    def flags(self, tenant_id: int) -> tuple[bool, bool, int] | None:
        """As committed at this moment; None for a tenant without a lane."""
        return events.flags([tenant_id]).get(tenant_id)

    def outbox(self, tenant_id: int, limit: int) -> list[EventRow]:
        """In the order of their ids."""
        return events.unmatched(tenant_id, limit)

    def lock_runs(self, run_ids: Sequence[int]) -> dict[int, RunRow]:
        """By id, with their events."""
        return runs.lock(run_ids)


@dataclass
class LaneTimers(Work):
    """The timers of the database, under the lease of `worker`."""

    worker: uuid.UUID

    def now(self) -> datetime:
        """The database's time."""
        return clock.now()

    def begin(self, claimed: Sequence[Claimed]) -> tuple[datetime, set[int]]:
        """The database's time, and the ids of those that are still leased by this worker under their fence."""
        return claims.begin(self.worker, [(one.timer_id, one.lease_seq) for one in claimed])

    def begin_match(self, claimed: Claimed, *, runs: int) -> Begun:
        """Begins a matcher's transaction: its lease, the tenant's flags, the time, ids for runs."""
        return claims.begin_match(self.worker, claimed, runs=runs)

    def write(self, new: Sequence[NewTimer]) -> None:
        """Inserts timers and tells their lanes."""
        timers.set_timers(new)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Deletes timers or puts them back, all or none."""
        if claims.settle_wave(self.worker, settlements) != len(settlements):
            raise Stale

    def hold(self, timer_ids: Sequence[int]) -> None:
        """Holds timers that the transaction has just put back."""
        timers.hold(timer_ids)

    def shelve(self, shelved: Sequence[Shelved]) -> None:
        """Holds steps whose timers the transaction has just written or put back."""
        shelves.put(shelved)

    def wait(self, waiting: Sequence[Waiting]) -> None:
        """Notes for whose place timers wait that the transaction has just put back."""
        places.wait(waiting)

    def give(self, connection_ids: Collection[int]) -> None:
        """Lets go on what waits for places with these connections; what can't be done now the sweep does."""
        give_places(connection_ids)

    def settle_match(
        self, claimed: Claimed, *, more: bool, charge: int = 0, not_before: datetime | None = None
    ) -> bool:
        """Ends a matcher's turn; False when its lease is gone."""
        return claims.settle_match(self.worker, claimed, more=more, charge=charge, not_before=not_before)

    def put_back(self, claimed: Claimed, *, due_at: datetime) -> bool:
        """Hands a timer back untouched; False when its lease is gone."""
        return claims.put_back(self.worker, claimed, due_at=due_at)
