"""Pauses a tenant; with its neighbours `held`, `resume`, `subjects` and `installation` the one door to all pauses."""

from datetime import datetime

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from automation.engine.by_itself import by_itself
from automation.engine.operate.held import (
    COUNTED,
    Concerned,
    HeldOfRule,
    PauseStatus,
    concerned,
    dripping,
    find_pause,
    held_by_rule,
    kept_by_kind,
    open_pause,
    over_tenant,
    status,
    younger,
    younger_than,
)
from automation.engine.operate.installation import (
    InstallationStatus,
    follow_installation,
    installation_status,
    pause_installation,
    resume_installation,
)
from automation.engine.operate.moments import check_until
from automation.engine.operate.resume import AT_ONCE, Choice, as_json, resume
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.operate.subjects import (
    end_rule_pause,
    held_by,
    pause_connection,
    pause_rule,
    resume_connection,
    resume_rule,
)
from automation.models import Pause
from automation.store import clock, pauses
from tenants import audit
from tenants.context import NOBODY, acting_as, acting_for, current_actor, current_tenant

LEVELS = ("new", "hold", "cancel")


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


def resume_due() -> int:
    """Ends the pauses whose `until` has come, each as it says and by itself; answers how many. A chore of the workers.

    Besides it gives lanes that missed the pause of the installation their flags.
    """
    follow_installation()
    due = Pause.objects.filter(ended_at=None, until__lte=clock.now()).order_by("id")
    found = list(due)
    for one in found:
        with by_itself("pause", pause_id=one.pk, tenant_id=one.tenant_id):
            _end_due(one)
    return len(found)


def _end_due(one: Pause) -> None:
    try:
        _resume(one)
    except ObjectDoesNotExist:  # the rule or connection is gone, and nothing can be held for it
        pauses.end_pause(one.scope, tenant_id=one.tenant_id, subject_id=one.subject_id)


def _resume(one: Pause) -> None:
    choice = Choice(one.keep, one.recent_minutes, one.rate)
    if one.tenant_id is None:
        with acting_as(NOBODY):
            resume_installation(choice)
        return
    with acting_for(one.tenant_id, NOBODY):
        if one.scope == "tenant":
            resume(choice)
        elif one.scope == "rule":
            resume_rule(one.subject_id or 0, choice)
        else:
            resume_connection(one.subject_id or 0, choice)


def _pause_rows(tenant_id: int, *, level: str, reason: str, until: datetime | None, rate: int | None) -> None:
    actor = current_actor().name
    before = open_pause()
    if before is not None and (before.level, before.until, before.rate) == (level, until, rate):
        return
    if before is not None:
        pauses.end_pause("tenant", tenant_id=tenant_id, actor=actor)
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
    "follow_installation",
    "held_by",
    "held_by_rule",
    "installation_status",
    "kept_by_kind",
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
