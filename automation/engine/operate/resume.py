"""Ends pauses, and does with what they held as asked: all of it, only the recent, or nothing, at once or at a rate."""

import math
import time
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
from automation.models import Drip, Pause
from automation.models.pauses import PAUSE_KEEPS
from automation.store import clock, drips, pauses, timers
from tenants import audit
from tenants.context import current_actor, current_tenant

AT_A_TIME, RUNS_AT_A_TIME = 2000, 200
AT_ONE_GO = 2.0  # seconds that whoever resumes waits for; the workers do the rest
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


AT_ONCE = Choice()


@dataclass(frozen=True, slots=True)
class Going:
    """A pause that is being ended: the choice is written into it, since `moment`; whoever works stops at `ends_at`.

    With `drip` it is over, and what that drip still lets out after it gets another choice.
    """

    pause: Pause
    choice: Choice
    moment: datetime
    ends_at: float = math.inf
    drip: Drip | None = None

    def is_so_still(self) -> bool:
        """Whether nobody has decided otherwise meanwhile; the pause is locked, before anything of it."""
        if self.drip is None:
            return pauses.lock(self.pause.pk, since=self.moment)
        pauses.lock_over(self.pause.pk)
        # Whoever pauses anew makes the drip of a rule or connection the shelf of the new pause.
        drip = Drip.objects.filter(pk=self.drip.pk, pause_id=self.pause.pk, ended_at=None, next_at__isnull=False)
        return drip.exists() and (self.pause.scope != "tenant" or find_pause("tenant") is None)

    @property
    def over(self) -> bool:
        """Whether it is time to leave the rest to the next turn."""
        return time.monotonic() > self.ends_at


def resume(choice: Choice = AT_ONCE) -> PauseStatus:
    """Lets the current tenant's automation go on.

    What was held is done at once or at the choice's rate, oldest first: first the steps that were due, then the kept
    events in their order. What is to be dropped is dropped before: events are marked as matched without runs, runs
    that waited are cancelled. While an earlier pause is still dripping, that gets the rate or the end asked for.
    Twice does nothing more.

    Works in batches of a transaction each, for two seconds; where that isn't enough the workers end the pause, and the
    tenant stands still until then. Raises `Refused` for a rate or an age that makes no sense.
    """
    choice.check()
    pause = find_pause("tenant")
    if pause is None:
        _change_pace(choice)
    else:
        going = decide(pause, choice)
        if going is not None:
            end_tenant(going)
    return status()


def end_tenant(going: Going) -> bool:
    """Ends the pause of the current tenant; False where time was over before: the next call goes on.

    False as well where somebody has ended it meanwhile, or ends it otherwise: a newer pause is nothing to this one.
    """
    tenant_id = current_tenant()
    if not drop_and_hold(going):
        return False
    with transaction.atomic():
        if not end(going):
            return False
        pauses.bump_rules(tenant_id)
        pauses.follow_pauses(tenant_id)
        # In a transaction of its own: an arming locks the timer before the lane.
        transaction.on_commit(partial(timers.arm_match, tenant_id))
    let_out_some(dripping())
    return True


def end(going: Going, *, rate: int | None = None) -> bool:
    """Ends this very pause and audits it, in the caller's transaction; False where it isn't being ended so any more."""
    if not pauses.lock(going.pause.pk, since=going.moment):
        return False
    pauses.end_pause(going.pause.pk, actor=current_actor().name, rate=rate)
    _write_down(going)
    return True


def batches(going: Going, work: Callable[[], int]) -> bool:
    """Does work batch by batch, a transaction each, until none is left; False where time was over before.

    And where somebody has ended the pause meanwhile, or ends it otherwise: what is left is no business of this end.
    """
    while True:
        with transaction.atomic():
            if not going.is_so_still():
                return False
            if not work():
                return True
        if going.over:
            return False


def decide(pause: Pause, choice: Choice) -> Going | None:
    """Writes the choice into an open pause and begins to end it; None where it has ended."""
    actor = current_actor()
    moment = pauses.decide(
        pause.pk,
        keep=choice.keep,
        recent_minutes=choice.recent_minutes,
        rate=choice.rate,
        actor=actor.name,
        actor_id=actor.id,
    )
    if moment is None:
        return None
    pause.place = None  # another choice goes through all tenants once more
    return Going(pause, choice, moment, time.monotonic() + AT_ONE_GO)


def drop_and_hold(going: Going, *, with_events: bool = True) -> bool:
    """Drops what the choice drops of what a tenant has kept, and puts the rest under a drip where there is a rate.

    Without events it is about due steps alone. The tenant still stands still meanwhile. Without a rate an earlier drip
    lets out all that it holds, in portions. False where time was over before.
    """
    tenant_id, pause, choice = current_tenant(), going.pause, going.choice
    held, before = pause.level != "new", choice.dropped_before(going.moment)
    if before is not None and not _drop(going, tenant_id, before=before, due=held, events=with_events):
        return False
    if choice.rate is None or choice.keep == "drop":

        def let_go() -> int:
            still = dripping()
            # The end of the installation's leaves alone what a tenant chose for itself.
            if still is not None and (pause.scope == "tenant" or still.drip.pause_id == pause.pk):
                drips.change_rate(still.drip.pk, None)
            return 0

        return batches(going, let_go)
    kept_until = drips.last_kept(tenant_id) if with_events else None
    # What a tenant lets out no faster of itself stays its own where the installation goes on.
    above = 0 if pause.scope == "tenant" else choice.rate

    def hold() -> int:
        drip_id = drips.open_drip(pause.pk, tenant_id=tenant_id, rate=choice.rate, kept_until=kept_until)
        if not held:
            return 0
        return drips.take_over(drip_id, tenant_id=tenant_id, limit=AT_A_TIME, above=above) or drips.hold_due(
            drip_id, tenant_id=tenant_id, until=going.moment, limit=AT_A_TIME
        )

    return batches(going, hold)


def _drop(going: Going, tenant_id: int, *, before: datetime, due: bool, events: bool = True) -> bool:
    def drop() -> int:
        count = drips.drop_events(tenant_id, before=before, at=going.moment, limit=AT_A_TIME)
        if count:
            pauses.count_dropped(going.pause.pk, events=count, runs=0)
        return count

    if events and not batches(going, drop):
        return False
    # Where running ones were held, also what came off the shelves of rules and connections before it.
    going_on = Drip.objects.filter(tenant_id=tenant_id, ended_at=None, next_at__isnull=False)
    for drip in going_on if due else going_on.filter(scope="tenant"):
        if not drop_held(going, partial(drips.held_in, drip.pk, before=before)):
            return False
    waiting = partial(drips.held_since, tenant_id, until=going.moment, before=before)
    return not due or drop_held(going, waiting)


def drop_held(going: Going, held: Callable[..., list[tuple[datetime, int, int]]]) -> bool:
    """Cancels the runs of what `held` answers, batch after batch; False where time was over before."""
    after = (LONG_AGO, 0)

    def drop() -> int:
        nonlocal after
        found = held(after=after, limit=RUNS_AT_A_TIME)
        if found:
            after = found[-1][:2]
            run_ids = {run_id for _due, _timer, run_id in found}
            cancelled = cancel_batch(sorted(run_ids), reason="dropped at the end of a pause")
            pauses.count_dropped(going.pause.pk, events=0, runs=cancelled.ended + cancelled.asked)
        return len(found)

    return batches(going, drop)


def let_out_some(still: Dripping | None) -> None:
    """What goes at once begins to, after the transaction that says so; the workers let out the rest."""
    if still is not None and (still.drip.rate is None or still.steps + still.events == 0):
        drips.let_out(late=0.0, drip_id=still.drip.pk)


def _change_pace(choice: Choice) -> None:
    """Another choice for what is still dripping; nothing where nothing is."""
    still = dripping()
    if still is None or still.drip.pause is None or (choice.keep == "all" and choice.rate == still.drip.rate):
        return
    tenant_id, pause, moment = current_tenant(), still.drip.pause, clock.now()
    before = choice.dropped_before(moment)
    if before is not None:  # what came since isn't the pause's any more
        going = Going(pause, choice, pause.resumed_at or moment, drip=still.drip)
        _drop(going, tenant_id, before=min(before, still.drip.since), due=False)
    dropped_events, dropped_runs = pause.dropped_events, pause.dropped_runs
    with transaction.atomic():
        pause.refresh_from_db(fields=["dropped_events", "dropped_runs"])
        drips.change_rate(still.drip.pk, None if choice.keep == "drop" else choice.rate)
        drips.hurry_match(tenant_id)
        audit.record(
            "pace",
            f"tenant:{tenant_id}",
            tenant_id=tenant_id,
            before={"rate": still.drip.rate, "steps": still.steps, "events": still.events},
            after=choice.as_json()
            | {
                "dropped_events": pause.dropped_events - dropped_events,
                "dropped_runs": pause.dropped_runs - dropped_runs,
            },
        )
    let_out_some(dripping())


def _write_down(going: Going) -> None:
    """The audit of an end, in its transaction."""
    pause = going.pause
    pause.refresh_from_db(fields=["dropped_events", "dropped_runs"])
    target = f"{pause.scope}:{pause.subject_id or pause.tenant_id or ''}".rstrip(":")
    audit.record(
        "resume",
        target,
        tenant_id=pause.tenant_id,
        before=as_json(pause),
        after=going.choice.as_json() | {"dropped_events": pause.dropped_events, "dropped_runs": pause.dropped_runs},
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
