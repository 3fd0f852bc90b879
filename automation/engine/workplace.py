"""What a pump asks of the store: its row, its claims, and which of its runs were cancelled."""

import os
import uuid

from automation.conf import Conf
from automation.engine.operate import bulk, pause
from automation.engine.rules import taking_up
from automation.store import claims, drips, timers
from automation.store import runs as store
from automation.store.claims import Claimed

LATE = 0.5  # seconds that a look comes late by where workers are busy; later ones make a drip slower
ENDING = 10.0  # seconds after which another worker goes on with the end of a pause
SHORTEST_IDLE = 1.0  # seconds; below that a busy machine would break transactions that are well

__all__ = ["Claimed", "adopt", "cancelled", "claim", "dismiss", "enlist", "let_out", "settle_in"]


def enlist(worker: uuid.UUID, *, pool: str, release: str, host: str, lease: float) -> None:
    """Writes the worker's row for this process."""
    claims.enlist(worker, pool=pool, release=release, host=host, pid=os.getpid(), lease=lease)


def settle_in(conf: Conf) -> None:
    """Limits on what this process's connection waits for; anew after each reconnection.

    The locks of a frozen process are gone before its lease is: who takes its work over doesn't wait for them.
    """
    claims.limit_waits(idle=max(conf.lease / 4, SHORTEST_IDLE))


def dismiss(worker: uuid.UUID) -> None:
    """Deletes the row of a worker that holds nothing."""
    claims.dismiss(worker)


def claim(worker: uuid.UUID, conf: Conf, *, pool: str, most: int, floor: int, match_only: bool) -> list[Claimed]:
    """Leases due timers of the pool in fairness order."""
    return claims.claim(
        worker, pool=pool, most=most, take=conf.take, deadline=conf.deadline, floor=floor, match_only=match_only
    )


def adopt(worker: uuid.UUID) -> list[Claimed]:
    """What is leased under the worker's id, after an answer of the database got lost."""
    return claims.adopt(worker)


def let_out(conf: Conf, worker: uuid.UUID) -> int:
    """Lets out what drips, bulk jobs and rules that take up records may let go by now; answers how many.

    Besides it ends pauses whose time has come, or goes on with it, one process at a time.
    """
    return (
        _end_pauses(worker) + drips.let_out(late=LATE) + bulk.work(late=conf.control_poll) + taking_up.work(late=LATE)
    )


def _end_pauses(worker: uuid.UUID) -> int:
    if not pause.is_due() or timers.take_sweep("pauses", holder=worker, every=0.0, hold=ENDING) is None:
        return 0
    try:
        return pause.resume_due()
    finally:
        timers.end_sweep("pauses", holder=worker)


def cancelled(run_ids: list[int]) -> list[int]:
    """Those of the runs that somebody asked to stop."""
    return store.cancel_requested(run_ids) if run_ids else []
