"""Ends pauses, and does with what they held as asked: all of it, only the recent, or nothing, at once or at a rate."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.engine.operate.held import Dripping, PauseStatus, dripping, find_pause, status
from automation.engine.operate.moments import check_rate
from automation.engine.operate.runs import cancel_batch
from automation.models import Pause
from automation.models.pauses import PAUSE_KEEPS
from automation.store import clock, drips, pauses, timers
from tenants import audit
from tenants.context import current_actor, current_tenant

AT_A_TIME = 2000
RUNS_AT_A_TIME = 200
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of what was held: `keep` all, the recent of so many minutes, or "drop"; at `rate` a minute."""

    keep: str = "all"
    recent_minutes: int | None = None
    rate: int | None = None

    def check(self) -> None:
        """Raises `Refused` for what makes no sense, ValueError for an unknown word."""
        if self.keep not in PAUSE_KEEPS:
            raise ValueError(f"what was held can't be told to {self.keep}")
        if (self.keep == "recent") != (self.recent_minutes is not None):
            raise Refused(_("Say how recent, in minutes, where only the recent goes on."))
        if self.recent_minutes is not None and not 1 <= self.recent_minutes <= 525_600:
            raise Refused(_("Recent is between one minute and a year."))
        check_rate(self.rate)

    def dropped_before(self, moment: datetime) -> datetime | None:
        """What is older is dropped, where the pause is ended at that moment; None where nothing is."""
        if self.keep == "all":
            return None
        return moment - timedelta(minutes=self.recent_minutes or 0)

    def as_json(self) -> dict[str, Any]:
        """For the audit."""
        return {"keep": self.keep, "recent_minutes": self.recent_minutes, "rate": self.rate}


@dataclass(frozen=True, slots=True)
class Dropped:
    """How much was dropped: events that no rule sees any more, and runs that were cancelled."""

    events: int = 0
    runs: int = 0


AT_ONCE = Choice()


def resume(choice: Choice = AT_ONCE) -> PauseStatus:
    """Lets the current tenant's automation go on.

    What was held is done at once or at the choice's rate, oldest first: first the steps that were due, then the kept
    events in their order. What is to be dropped is dropped before: events are marked as matched without runs, runs
    that waited are cancelled. While an earlier pause is still dripping, that gets the rate or the end asked for.
    Twice does nothing more.

    Works in batches of a transaction each and may be called again after a crash: the pause ends last. Raises
    `Refused` for a rate or an age that makes no sense.
    """
    choice.check()
    if find_pause("tenant") is None:
        _change_pace(choice)
    else:
        _end_tenant_pause(choice)
    return status()


def _end_tenant_pause(choice: Choice) -> None:
    tenant_id = current_tenant()
    pause = find_pause("tenant")
    moment = decide(pause, choice)
    if pause is None or moment is None:
        return
    dropped = drop_and_hold(pause, choice, moment=moment)
    with transaction.atomic():
        if pauses.end_pause("tenant", tenant_id=tenant_id, actor=current_actor().name):
            write_down(pause, choice, dropped)
            pauses.bump_rules(tenant_id)
            pauses.follow_pauses(tenant_id)
            # In a transaction of its own: an arming locks the timer before the lane.
            transaction.on_commit(partial(timers.arm_match, tenant_id))


def decide(pause: Pause | None, choice: Choice) -> datetime | None:
    """Writes the choice into an open pause and answers since when it is being ended; None where it has ended."""
    if pause is None:
        return None
    return pauses.decide(pause.pk, keep=choice.keep, recent_minutes=choice.recent_minutes, rate=choice.rate)


def drop_and_hold(pause: Pause, choice: Choice, *, moment: datetime) -> Dropped:
    """Drops what the choice drops of what a tenant has kept, and puts the rest under a drip where there is a rate.

    The tenant still stands still meanwhile. Without a rate an earlier drip ends, and all that it held is due.
    """
    tenant_id, held = current_tenant(), pause.level != "new"
    before = choice.dropped_before(moment)
    dropped = _drop(tenant_id, pause.pk, before=before, moment=moment, due=held) if before else Dropped()
    if choice.rate is None or choice.keep == "drop":
        if pause.scope == "tenant":  # the end of the installation's leaves a tenant's own choice alone
            _let_go(dripping())
        return dropped
    kept_until = drips.last_kept(tenant_id)
    drip_id = drips.open_drip(
        pause.pk, tenant_id=tenant_id, scope="tenant", subject_id=None, rate=choice.rate, kept_until=kept_until
    )
    while held and drips.hold_due(drip_id, tenant_id=tenant_id, until=moment, limit=AT_A_TIME):
        pass
    still = dripping()
    if still is not None and still.steps + still.events == 0:
        _let_go(still)
    return dropped


def _drop(tenant_id: int, pause_id: int, *, before: datetime, moment: datetime, due: bool) -> Dropped:
    events = 0
    while count := _counted(pause_id, partial(drips.drop_events, tenant_id, before=before, at=moment, limit=AT_A_TIME)):
        events += count
    runs = _drop_dripping(pause_id, before=before)
    after = (LONG_AGO, 0)
    while due and (
        found := drips.held_since(tenant_id, until=moment, before=before, after=after, limit=RUNS_AT_A_TIME)
    ):
        after = found[-1][:2]
        runs += cancel_held(pause_id, [run_id for _due, _timer, run_id in found])
    return Dropped(events, runs)


def _drop_dripping(pause_id: int, *, before: datetime) -> int:
    """Cancels what an earlier pause had held and is still to be let out."""
    still, runs = dripping(), 0
    found = drips.dripping(still.drip.pk, before=before) if still is not None else []
    for start in range(0, len(found), RUNS_AT_A_TIME):
        runs += cancel_held(pause_id, found[start : start + RUNS_AT_A_TIME])
    return runs


def _counted(pause_id: int, drop: Callable[[], int]) -> int:
    with transaction.atomic():
        count = drop()
        if count:
            pauses.count_dropped(pause_id, events=count, runs=0)
    return count


def cancel_held(pause_id: int, run_ids: list[int]) -> int:
    """Cancels runs that a pause has held, one transaction, and counts them in the pause; answers how many."""
    with transaction.atomic():
        cancelled = cancel_batch(sorted(set(run_ids)), reason="dropped at the end of a pause")
        ended = cancelled.ended + cancelled.asked
        if ended:
            pauses.count_dropped(pause_id, events=0, runs=ended)
    return ended


def _let_go(still: Dripping | None) -> None:
    if still is not None:
        with transaction.atomic():
            drips.let_go(still.drip.pk)


def _change_pace(choice: Choice) -> None:
    """Another choice for what is still dripping; nothing where nothing is."""
    still = dripping()
    if still is None or (choice.keep == "all" and choice.rate == still.drip.rate):
        return
    tenant_id, pause, moment = current_tenant(), still.drip.pause, clock.now()
    before = choice.dropped_before(moment)
    if before is not None:  # what came since isn't the pause's any more
        before = min(before, still.drip.since)
    at = pause.resumed_at or moment
    dropped = _drop(tenant_id, pause.pk, before=before, moment=at, due=False) if before else Dropped()
    with transaction.atomic():
        if choice.rate is None or choice.keep == "drop":
            drips.let_go(still.drip.pk)
        else:
            drips.open_drip(
                pause.pk, tenant_id=tenant_id, scope="tenant", subject_id=None, rate=choice.rate, kept_until=None
            )
        drips.hurry_match(tenant_id)
        audit.record(
            "pace",
            f"tenant:{tenant_id}",
            tenant_id=tenant_id,
            before={"rate": still.drip.rate, "steps": still.steps, "events": still.events},
            after=choice.as_json() | {"dropped_events": dropped.events, "dropped_runs": dropped.runs},
        )


def write_down(pause: Pause, choice: Choice, dropped: Dropped) -> None:
    """The audit of an end, in its transaction."""
    target = f"{pause.scope}:{pause.subject_id or pause.tenant_id or ''}".rstrip(":")
    audit.record(
        "resume",
        target,
        tenant_id=pause.tenant_id,
        before=as_json(pause),
        after=choice.as_json() | {"dropped_events": dropped.events, "dropped_runs": dropped.runs},
    )


def as_json(pause: Pause | None) -> dict[str, Any] | None:
    """A pause as audit entries show it."""
    if pause is None:
        return None
    return {
        "level": pause.level,
        "reason": pause.reason,
        "since": pause.since.isoformat(),
        "until": pause.until.isoformat() if pause.until else None,
        "rate": pause.rate,
    }
