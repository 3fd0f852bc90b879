"""Pauses a tenant; with its neighbours `held`, `resume`, `subjects` and `installation` the one door to all pauses."""

import time
from dataclasses import replace
from datetime import datetime

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import Q

from automation.engine.by_itself import by_itself
from automation.engine.operate.held import (
    Concerned,
    HeldOfRule,
    PauseStatus,
    concerned,
    dripping,
    find_pause,
    held_by_rule,
    is_same,
    kept_by_kind,
    open_pause,
    over_tenant,
    status,
    younger,
    younger_than,
)
from automation.engine.operate.installation import (
    InstallationStatus,
    end_installation,
    heal_pauses,
    installation_status,
    pause_installation,
    resume_installation,
)
from automation.engine.operate.moments import check_until
from automation.engine.operate.resume import (
    AT_ONCE,
    Choice,
    Going,
    as_json,
    decide,
    end_tenant,
    let_out_some,
    resume,
)
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.operate.subjects import (
    end_part,
    end_rule_pause,
    gather_put_off,
    held_by,
    pause_connection,
    pause_rule,
    resume_connection,
    resume_rule,
)
from automation.models import Pause
from automation.store import clock, pauses
from automation.store.drips import COUNTED
from tenants import audit
from tenants.context import Actor, acting_as, acting_for, current_actor, current_tenant

LEVELS = ("new", "hold", "cancel")
SLICE = 0.25  # seconds a turn: the pump that does it has other things to do
AT_A_TIME = 50


def pause(*, level: str = "hold", reason: str, until: datetime | None = None, rate: int | None = None) -> PauseStatus:
    """Pauses the current tenant: "new" runs only, "hold" running ones at their next step, or "cancel" everything.

    Nothing is lost: timers are frozen and events are kept. At `until` it goes on by itself, with what was held at
    `rate` a minute if one is given. A pause that is open already is moved to the level asked for; the same pause
    twice does nothing more. Raises `Refused` for an `until` that is past or more than a hundred years ahead and for a
    rate that makes no sense, ValueError for another level.
    Level "cancel" works in batches of a transaction each: call it outside a transaction.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no pause level {level}")
    check_until(until, rate)
    tenant_id = current_tenant()
    with transaction.atomic():
        _pause_rows(tenant_id, level=level, reason=reason, until=until, rate=rate)
    if level == "cancel":
        cancel_all(reason=reason)
    return status()


def resume_due(*, seconds: float = SLICE) -> int:
    """Goes on with pauses that are being ended, and begins with those whose `until` has come; answers how many ended.

    A chore of the workers, for one of them at a time: where time is over the next turn goes on. Each goes on as it
    says, and for whom it was asked.
    """
    due = Q(until__lte=clock.now()) | Q(resumed_at__isnull=False)
    ends_at, ended = time.monotonic() + seconds, 0
    for one in Pause.objects.filter(due, ended_at=None).order_by("resumed_at", "id")[:AT_A_TIME]:
        with by_itself("pause", pause_id=one.pk, tenant_id=one.tenant_id):
            ended += _end_due(one, ends_at)
        if time.monotonic() > ends_at:
            break
    return ended


def is_due() -> bool:
    """Whether a pause is being ended, or its `until` has come: one look into an index."""
    return pauses.any_due()


def _end_due(one: Pause, ends_at: float) -> bool:
    actor = Actor("person" if one.resumed_by_id else "system", one.resumed_by_id, one.resumed_by)
    with acting_for(one.tenant_id, actor) if one.tenant_id else acting_as(actor):
        try:
            return _end(one, ends_at)
        except ObjectDoesNotExist:  # the rule or connection is gone, and nothing can be held for it
            return pauses.end_pause(one.pk)


def _end(one: Pause, ends_at: float) -> bool:
    choice = Choice(one.keep, one.recent_minutes, one.rate)
    choice.check()
    going = decide(one, choice) if one.resumed_at is None else Going(one, choice, one.resumed_at)
    if going is None:
        return False
    end = {"tenant": end_tenant, "installation": end_installation}.get(one.scope, end_part)
    return end(replace(going, ends_at=ends_at))


def _pause_rows(tenant_id: int, *, level: str, reason: str, until: datetime | None, rate: int | None) -> None:
    actor = current_actor().name
    before = open_pause()
    if before is not None and is_same(before, level=level, until=until, rate=rate):
        return
    if before is not None:
        pauses.end_pause(before.pk, actor=actor)
    opened = pauses.open_pause(
        "tenant", tenant_id=tenant_id, level=level, reason=reason, actor=actor, until=until, rate=rate
    )
    if opened is None:
        return  # somebody else paused at the same moment: theirs stands
    audit.record(
        "pause",
        f"tenant:{tenant_id}",
        tenant_id=tenant_id,
        reason=reason,
        before=as_json(before),
        after={"level": level, "until": until.isoformat() if until else None, "rate": rate},
    )
    pauses.drop_match(tenant_id)
    pauses.follow_pauses(tenant_id)


__all__ = [
    "AT_ONCE",
    "COUNTED",
    "LEVELS",
    "Cancelled",
    "Choice",
    "Concerned",
    "HeldOfRule",
    "InstallationStatus",
    "PauseStatus",
    "concerned",
    "dripping",
    "end_rule_pause",
    "find_pause",
    "gather_put_off",
    "heal_pauses",
    "held_by",
    "held_by_rule",
    "installation_status",
    "is_due",
    "kept_by_kind",
    "let_out_some",
    "open_pause",
    "over_tenant",
    "pause",
    "pause_connection",
    "pause_installation",
    "pause_rule",
    "resume",
    "resume_connection",
    "resume_due",
    "resume_installation",
    "resume_rule",
    "status",
    "younger",
    "younger_than",
]
