"""Pauses and resumes the whole installation: every tenant at once, as staff do it and as a restored backup begins."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from automation.engine.operate.held import find_pause, is_same, open_pause
from automation.engine.operate.moments import check_until
from automation.engine.operate.resume import AT_ONCE, Choice, Going, as_json, decide, drop_and_hold, end
from automation.models import Pause
from automation.store import installation as rows
from automation.store import pauses, shelves, timers
from tenants import audit
from tenants.context import acting_for, current_actor
from tenants.models import Tenant

LEVELS = ("new", "hold")
SHOWN = 20  # tenants named one by one


@dataclass(frozen=True, slots=True)
class HeldOfTenant:
    """How much of one tenant is kept or due."""

    slug: str
    name: str
    events: int
    steps: int


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """Whether the whole installation runs: "running", "pausing" while workers are on something, or "paused".

    `tenants` have something kept or due; the numbers count them all together, to a bound for each tenant; `most` are
    those with the most.
    """

    state: str
    pause: Pause | None
    in_flight: int
    workers: list[str]
    tenants: int
    kept_events: int
    timers_due: int
    most: list[HeldOfTenant]


def installation_status() -> InstallationStatus:
    """How the pause of the whole installation stands and what it holds; without one, what it would."""
    pause = find_pause("installation")
    leases = pauses.in_flight(None, kind="match" if pause is not None and pause.level == "new" else None)
    holding = rows.holding()
    return InstallationStatus(
        state="running" if pause is None else "pausing" if leases else "paused",
        pause=pause,
        in_flight=len(leases),
        workers=sorted({worker for _timer, worker in leases}),
        tenants=len(holding),
        kept_events=sum(events for _tenant, events, _steps in holding),
        timers_due=sum(steps for _tenant, _events, steps in holding),
        most=_named(sorted(holding, key=lambda one: one[1] + one[2], reverse=True)[:SHOWN]),
    )


def _named(holding: list[tuple[int, int, int]]) -> list[HeldOfTenant]:
    tenants = Tenant.objects.in_bulk([tenant_id for tenant_id, _events, _steps in holding])
    return [
        HeldOfTenant(tenants[one].slug, tenants[one].name, events, steps)
        for one, events, steps in holding
        if one in tenants
    ]


def pause_installation(
    *, level: str = "hold", reason: str, until: datetime | None = None, rate: int | None = None
) -> InstallationStatus:
    """Stops every tenant, and those that come: "new" runs only, or "hold" running ones at their next step as well.

    Pauses of tenants stay beside it. The same twice does nothing more, another level or time moves it. At `until` it
    goes on by itself, each tenant at `rate` a minute if one is given. Raises `Refused`, ValueError for another level.
    """
    if level not in LEVELS:
        raise ValueError(f"an installation can't be paused at the level {level}")
    check_until(until, rate)
    with transaction.atomic():
        before, actor = find_pause("installation"), current_actor().name
        if before is None or not is_same(before, level=level, until=until, rate=rate):
            if before is not None:
                pauses.end_pause(before.pk, actor=actor)
            pauses.open_pause(
                "installation", tenant_id=None, level=level, reason=reason, actor=actor, until=until, rate=rate
            )
            after = {"level": level, "until": until.isoformat() if until else None, "rate": rate}
            audit.record("pause", "installation", tenant_id=None, reason=reason, before=as_json(before), after=after)
            pauses.drop_match(None)
            pauses.follow_pauses(None)
    return installation_status()


def resume_installation(choice: Choice = AT_ONCE) -> InstallationStatus:
    """Lets every tenant go on that has no pause of its own, each at the choice's rate.

    Works in batches of a transaction each, for two seconds; where that isn't enough the workers go on, tenant after
    tenant. The pause ends last.
    """
    choice.check()
    pause = find_pause("installation")
    going = decide(pause, choice) if pause is not None else None
    if going is not None:
        end_installation(going)
    return installation_status()


def end_installation(going: Going) -> bool:
    """Ends the pause of the installation; False where time was over before: the next call goes on where it was."""
    pause, done = going.pause, going.pause.place or 0
    waiting = rows.concerned(after=done)
    for tenant_id in waiting:
        with acting_for(tenant_id, current_actor()):
            own = open_pause()
            # A tenant that only starts nothing new goes on with its steps; its events stay its own pause's.
            ends = own is None or (own.level == "new" and pause.level != "new")
            if ends and not drop_and_hold(going, with_events=own is None):
                return False
        if not pauses.set_place(pause.pk, tenant_id, since=going.moment):
            return False
        if going.over and tenant_id != waiting[-1]:
            return False
    with transaction.atomic():
        if not end(going):
            return False
        rows.bump_all()
        pauses.follow_pauses(None)
        transaction.on_commit(arm_all)
    return True


def arm_all() -> None:
    """Makes sure that the events of every tenant that has some get matched."""
    timers.heal_match(age=0.0)


def heal_pauses(*, shelves_too: bool = True) -> int:
    """Gives lanes that missed the begin or end of a pause their flags, and shelves astray their state; a chore.

    The one is a tenant that was made at the same moment, the other a worker of the release before. Answers how many.
    """
    with transaction.atomic():  # the lanes are locked before the pauses are read
        lanes = pauses.follow_pauses(None) if rows.astray() else 0
    return lanes + shelves.heal() if shelves_too else lanes
