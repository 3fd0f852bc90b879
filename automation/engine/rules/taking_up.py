"""Has a rule run for the records that it concerns already, at a pace, where somebody asks for it."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.errors import DefinitionError
from automation.core.moments import Moment
from automation.core.spec import RuleSpec
from automation.definitions.compile import compile_definition
from automation.definitions.standing import standing
from automation.engine.by_itself import by_itself
from automation.engine.operate import Refused
from automation.engine.operate.pause import open_pause
from automation.engine.posting import post_standing
from automation.engine.references import References, problems_of
from automation.engine.rules.existing import Existing, existing
from automation.engine.rules.finding import find, record
from automation.models import Lane, Rule
from automation.store import clock, drips
from automation.store import rules as rule_rows
from tenants.context import Actor, acting_for, current_actor, current_tenant
from tenants.models import Tenant

FASTEST = 6000.0  # a minute
PORTION = 200  # records a transaction
WINDOW = 20_000  # ids that one query looks at, so that none takes long where few records fit
SLICE = 0.25  # seconds that one look may take: the pump has other things to do


@dataclass(frozen=True, slots=True)
class TakingUp:
    """How far a rule has come: `rate` records a minute; ids up to `last` are seen to, those above `until` came later.

    `posted` events were written. `next_at` is when the next one is due.
    """

    rate: float
    last: int
    until: int
    posted: int
    next_at: datetime
    actor: str
    actor_id: int | None

    @classmethod
    def of(cls, rule: Rule) -> "TakingUp | None":
        """What is kept with a rule; None where it takes up nothing."""
        kept: Mapping[str, Any] | None = rule.taking_up
        return None if kept is None else cls(**{**kept, "next_at": datetime.fromisoformat(kept["next_at"])})

    def kept(self) -> dict[str, Any]:
        """As it is kept with the rule."""
        return {**asdict(self), "next_at": self.next_at.isoformat()}


def take_up(rule_id: int, *, rate: float, reason: str = "") -> TakingUp:
    """Begins to run a rule that is on for the records that it surely concerns as they stand, `rate` of them a minute.

    Each gets an event for this rule alone, on which its condition is judged as if the record had just been made as it
    is. Asked again while it goes on, only the rate changes. Raises `Rule.DoesNotExist`, and `Refused` for a rule that
    is off, that no change of a record starts, or a rate that makes no sense.
    """
    if not 0 < rate <= FASTEST:
        raise Refused(_("A rate is more than 0 and at most %s a minute.") % int(FASTEST))
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        spec, entry = _concerned(rule)
        if spec is None or entry is None:
            raise Refused(_why_not(rule))
        actor, going = current_actor(), TakingUp.of(rule)
        if going is None:
            newest = entry.model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
            state = TakingUp(rate, 0, newest, 0, clock.now(), actor.name, actor.id)
        else:
            state = replace(going, rate=rate)
        if state != going:
            rule_rows.set_taking_up(rule.pk, state.kept())
            before = {"rate": going.rate} if going else None
            record("take_up", rule, reason=reason, before=before, after={"rate": rate, "until": state.until})
    return state


def concerned(rule_id: int) -> Existing | None:
    """How many records a rule that is on would be run for; None for a rule that can't take up any."""
    spec, _entry = _concerned(find(rule_id))
    return existing(spec) if spec is not None else None


def stop_taking_up(rule_id: int, reason: str = "") -> bool:
    """Ends it; runs that were begun go on. False where there was nothing to end."""
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        state = TakingUp.of(rule)
        if state is not None:
            _end(rule, state, reason or "stopped")
    return state is not None


def work(*, late: float) -> int:
    """Writes the events that are due, for which workers look once a moment; answers how many.

    None is written beforehand. What looks come late by is made up for, `late` seconds at most, a standstill isn't.
    """
    ends_at, done = time.monotonic() + SLICE, 0
    for rule_id, tenant_id in rule_rows.taking_up(limit=50):
        with by_itself("taking up", rule_id=rule_id, tenant_id=tenant_id), acting_for(tenant_id):
            done += _portion(rule_id, late=late)
        if time.monotonic() > ends_at:
            break
    return done


@transaction.atomic
def _portion(rule_id: int, *, late: float) -> int:
    """One transaction of one rule: what is due, PORTION at most."""
    free = Rule.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=rule_id)
    rule = free.first()
    state = TakingUp.of(rule) if rule is not None else None
    if rule is None or state is None:
        return 0
    spec, entry = _concerned(rule)
    if spec is None or entry is None:
        _end(rule, state, "rule_off")
        return 0
    now = clock.now()
    begins = drips.paced_from(state.next_at, now, late=late)
    if begins > now or _is_held(rule):
        return 0
    room = min(PORTION, int((now - begins).total_seconds() * state.rate / 60) + 1)
    chosen, last = _choose(spec, entry, state, room)
    with acting_for(rule.tenant_id, Actor("person" if state.actor_id else "system", state.actor_id, state.actor)):
        posted = sum(_post(rule, spec, record_id) for record_id in chosen)
    next_at = begins + timedelta(minutes=posted / state.rate)
    state = replace(state, last=last, posted=state.posted + posted, next_at=next_at)
    if last >= state.until:
        _end(rule, state, "finished")
    else:
        rule_rows.set_taking_up(rule.pk, state.kept())
    return posted


def _choose(spec: RuleSpec, entry: Automatable, state: TakingUp, room: int) -> tuple[list[int], int]:
    """The next records, and up to which id all are seen to then; a window of ids at a time."""
    tenant = Tenant.objects.get(pk=current_tenant())
    wanted = standing(spec.condition, entry, Moment(now=clock.now(), zone=tenant.zone)).least
    first = entry.model._default_manager.filter(pk__gt=state.last, pk__lte=state.until).order_by("pk")
    begins = first.values_list("pk", flat=True).first()
    if begins is None:
        return [], state.until
    end = min(begins + WINDOW, state.until)
    inside = entry.model._default_manager.filter(wanted, pk__gte=begins, pk__lte=end).order_by("pk")
    found = list(inside.values_list("pk", flat=True)[:room])
    return found, found[-1] if len(found) == room else end


def _post(rule: Rule, spec: RuleSpec, record_id: int) -> int:
    change = "created" if "created" in spec.trigger.on or not spec.trigger.on else "updated"
    key = f"standing:{rule.pk}:{rule.published_id}:{record_id}"
    try:
        post_standing(rule.pk, model=spec.trigger.model, record_id=record_id, change=change, key=key)
    except LookupError:
        return 0  # deleted in this moment
    return 1


def _concerned(rule: Rule) -> tuple[RuleSpec | None, Automatable | None]:
    """The spec of a rule that may take records up, and their model; None for another one."""
    version = rule.published
    if not rule.on or rule.deleted_at is not None or version is None:
        return None, None
    try:
        spec = compile_definition(version.definition, registry, References(rule.tenant_id), published=True)
    except DefinitionError:
        return None, None
    if spec.trigger.kind != "record_changed" or spec.trigger.on == {"deleted"}:
        return None, None
    return spec, registry.models.get(spec.trigger.model)


def _why_not(rule: Rule) -> str:
    """Why a rule can't take up anything: what it has lost, where it is that."""
    definition = rule.published.definition if rule.on and rule.published is not None else None
    lost = problems_of(definition, References(rule.tenant_id), published=True) if definition is not None else []
    if lost:
        return _("The rule is broken: %s") % "; ".join(map(str, lost))
    return _("Only a rule that is on and started by changes of records can take up those that are there.")


def _is_held(rule: Rule) -> bool:
    """Under a pause nothing is begun: the rest follows when it has ended."""
    lane = Lane.objects.get(tenant_id=rule.tenant_id)
    return lane.paused or lane.hold_new or open_pause(rule.pk) is not None


def _end(rule: Rule, state: TakingUp, why: str) -> None:
    rule_rows.set_taking_up(rule.pk, None)
    record("taken_up", rule, reason=why, after={"posted": state.posted, "last": state.last, "until": state.until})
