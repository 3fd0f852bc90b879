"""Says how a pause stands, what it holds, and what is still to come after it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from automation.catalog import registry
from automation.models import Drip, Lane, Pause
from automation.models.pauses import MOST_A_MINUTE
from automation.store import clock, held, pauses
from automation.store.drips import COUNTED
from tenants.context import current_tenant

CHANGES = {
    "created": _("%(what)s, created"),
    "updated": _("%(what)s, changed"),
    "deleted": _("%(what)s, deleted"),
}
AGES = [60, 24 * 60, 7 * 24 * 60]  # minutes: what "only the recent" is offered for


@dataclass(frozen=True, slots=True)
class Concerned:
    """What a pause would hold; each number counted to `COUNTED` at most."""

    live_runs: int
    in_flight: int
    unmatched_events: int
    timers_due: int


@dataclass(frozen=True, slots=True)
class Dripping:
    """What is let out after a pause, at the drip's rate or without one in portions.

    `steps` and `events` are left, each counted to one more than `COUNTED`; the last comes about `ends_at`.
    """

    drip: Drip
    steps: int
    events: int
    ends_at: datetime

    @property
    def steps_left(self) -> str:
        """In words: beyond what is counted, that there are more."""
        return said(self.steps)

    @property
    def events_left(self) -> str:
        """In words, likewise."""
        return said(self.events)


@dataclass(frozen=True, slots=True)
class PauseStatus:
    """How far a pause has come: "running", "pausing" while a worker is still on something, or "paused".

    `pause` is the tenant's own, else the whole installation's. `in_flight` steps are running on `workers`
    ("host:pid"); kept events, live runs and due timers are counted to `COUNTED` at most. `dripping` is what an
    earlier pause of the tenant had held.
    """

    state: str
    pause: Pause | None
    in_flight: int
    workers: list[str]
    kept_events: int
    live_runs: int
    timers_due: int
    dripping: Dripping | None = None

    @property
    def held_runs(self) -> int:
        """Live runs that are held, those that sleep among them: all of them, or none."""
        return self.live_runs if self.pause is not None and self.pause.level != "new" else 0

    @property
    def by_installation(self) -> bool:
        """Whether only the staff can end it."""
        return self.pause is not None and self.pause.scope == "installation"


@dataclass(frozen=True, slots=True)
class HeldOfRule:
    """Steps of a rule that are held, and since when the oldest is due or, where they are put off, its run is there."""

    rule_id: int
    rule_name: str
    steps: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """Events of a kind that no rule has seen yet, and when the oldest happened."""

    model: str
    change: str
    name: str
    source: str
    events: int
    oldest: datetime

    @property
    def what(self) -> str:
        """What happened, in the words that people have for it."""
        known = registry.models.get(self.model)
        label = str(known.label) if known is not None else self.model
        if self.change not in CHANGES:
            return f"{label} {self.name}".strip()
        return CHANGES[self.change] % {"what": label}


@dataclass(frozen=True, slots=True)
class Younger:
    """What of all that is held is younger than so many minutes."""

    minutes: int
    events: int
    steps: int


def said(count: int) -> str:
    """A number that was counted to one more than `COUNTED`."""
    return gettext("more than 10,000") if count > COUNTED else str(count)


def concerned() -> Concerned:
    """What a pause of the current tenant would hold at this moment."""
    tenant_id = current_tenant()
    found = pauses.counts(tenant_id)
    return Concerned(found["runs"], len(pauses.in_flight(tenant_id)), found["events"], found["timers_due"])


def status() -> PauseStatus:
    """Whether the current tenant's automation runs, and what a pause holds."""
    tenant_id = current_tenant()
    lane = Lane.objects.get(tenant_id=tenant_id)
    pause = over_tenant()
    # A pause of new runs only waits for nobody but a matcher.
    leases = pauses.in_flight(tenant_id, kind="match" if lane.hold_new and not lane.paused else None)
    state = "running"
    if pause is not None and (lane.paused or lane.hold_new):
        state = "pausing" if leases else "paused"
    found = pauses.counts(tenant_id)
    return PauseStatus(
        state=state,
        pause=pause,
        in_flight=len(leases),
        workers=sorted({worker for _timer, worker in leases}),
        kept_events=found["events"],
        live_runs=found["runs"],
        timers_due=found["timers_due"],
        dripping=dripping(),
    )


def open_pause(rule_id: int | None = None) -> Pause | None:
    """The open pause of the current tenant, or of one of its rules."""
    return find_pause("tenant" if rule_id is None else "rule", rule_id)


def find_pause(scope: str, subject_id: int | None = None) -> Pause | None:
    """The open pause of the current tenant, its rule or its connection; of the installation, whoever asks."""
    found = Pause.objects.filter(scope=scope, subject_id=subject_id, ended_at=None)
    return (found if scope == "installation" else found.filter(tenant_id=current_tenant())).first()


def is_same(found: Pause, *, level: str, until: datetime | None, rate: int | None) -> bool:
    """Whether an open pause is already what is asked for; one that is being ended isn't."""
    return found.resumed_at is None and (found.level, found.until, found.rate) == (level, until, rate)


def over_tenant() -> Pause | None:
    """The pause that stops the current tenant: its own, else that of the installation."""
    stops = Q(scope="tenant", tenant_id=current_tenant()) | Q(scope="installation")
    return Pause.objects.filter(stops, ended_at=None).order_by("-scope").first()


def dripping(scope: str = "tenant", subject_id: int | None = None) -> Dripping | None:
    """What is still let out after a pause of the current tenant, its rule or its connection; None where nothing is."""
    going = Drip.objects.filter(ended_at=None, next_at__isnull=False)
    found = going.filter(scope=scope, tenant_id=current_tenant(), subject_id=subject_id).first()
    if found is None or found.next_at is None:
        return None
    steps, events = held.left(found.pk)
    # Beyond what is counted, what it has held tells how long it takes; steps that were cancelled make it shorter.
    many = steps if steps <= COUNTED else max(steps, found.held - found.released)
    seconds = (many + events) * 60 / (found.rate or MOST_A_MINUTE)
    return Dripping(found, steps, events, max(found.next_at, clock.now()) + timedelta(seconds=seconds))


def held_by_rule() -> list[HeldOfRule]:
    """The current tenant's steps that are due or held, by rule, the most first."""
    return [HeldOfRule(*row) for row in held.by_rule(current_tenant())]


def dropped_at(moments: Iterable[datetime]) -> dict[datetime, Pause]:
    """The pauses over the current tenant whose end dropped events, by the moment that those have as `matched_at`."""
    over = Q(scope="tenant", tenant_id=current_tenant()) | Q(scope="installation")
    found = Pause.objects.filter(over, dropped_events__gt=0, resumed_at__in=set(moments))
    return {one.resumed_at: one for one in found if one.resumed_at is not None}


def kept_by_kind() -> list[KeptEvents]:
    """The current tenant's kept events, by what happened, the most first."""
    return [KeptEvents(*row) for row in held.by_kind(current_tenant())]


def younger() -> list[Younger]:
    """How much of what is held "only the recent" would keep, for each of `AGES`."""
    return [Younger(minutes, events, steps) for minutes, (events, steps) in zip(AGES, younger_than(AGES), strict=True)]


def younger_than(ages: list[int]) -> list[tuple[int, int]]:
    """(events, steps) of what the current tenant's pause holds that are younger than so many minutes, for each age."""
    return held.younger_than(current_tenant(), ages)
