"""Pauses and resumes a tenant or one of its rules, and says how far a pause has come."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.models import Lane, Pause, Rule
from automation.store import clock, pauses, timers
from automation.store import rules as rule_rows
from tenants import audit
from tenants.context import NOBODY, acting_for, current_actor, current_tenant

LEVELS = ("new", "hold", "cancel")
LONGEST = timedelta(days=36_525)  # a hundred years: what lies far beyond is no date that everybody can read
COUNTED = pauses.COUNTED


@dataclass(frozen=True, slots=True)
class Concerned:
    """What a pause would hold; each number counted to `COUNTED` at most."""

    live_runs: int
    in_flight: int
    unmatched_events: int
    timers_due: int


@dataclass(frozen=True, slots=True)
class PauseStatus:
    """How far a pause has come: "running", "pausing" while a worker is still on something, or "paused".

    `in_flight` steps are running on `workers` ("host:pid"); kept events, held runs and due timers are counted to
    `COUNTED` at most.
    """

    state: str
    pause: Pause | None
    in_flight: int
    workers: list[str]
    kept_events: int
    held_runs: int
    timers_due: int


def concerned() -> Concerned:
    """What a pause of the current tenant would hold at this moment."""
    tenant_id = current_tenant()
    found = pauses.counts(tenant_id)
    return Concerned(found["runs"], len(pauses.in_flight(tenant_id)), found["events"], found["timers_due"])


def status() -> PauseStatus:
    """Whether the current tenant's automation runs, and what a pause holds."""
    tenant_id = current_tenant()
    pause = open_pause()
    lane = Lane.objects.get(tenant_id=tenant_id)
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
        held_runs=found["runs"],
        timers_due=found["timers_due"],
    )


def open_pause(rule_id: int | None = None) -> Pause | None:
    """The open pause of the current tenant, or of one of its rules."""
    scope = "tenant" if rule_id is None else "rule"
    return Pause.objects.filter(scope=scope, tenant_id=current_tenant(), subject_id=rule_id, ended_at=None).first()


def pause(*, level: str = "hold", reason: str, until: datetime | None = None) -> PauseStatus:
    """Pauses the current tenant: "new" runs only, "hold" running ones at their next step, or "cancel" everything.

    Nothing is lost: timers are frozen and events are kept. A pause that is open already is moved to the level asked
    for; the same pause twice does nothing more. Raises `Refused` for an `until` that is past or more than
    a hundred years ahead, ValueError for another level.
    Level "cancel" works in batches of a transaction each: call it outside a transaction.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no pause level {level}")
    if until is not None and until <= clock.now():
        raise Refused(_("The time to resume by itself is past already."))
    if until is not None and until > clock.now() + LONGEST:
        raise Refused(_("The time to resume by itself is more than a hundred years ahead."))
    tenant_id = current_tenant()
    with transaction.atomic():
        _pause_rows(tenant_id, level=level, reason=reason, until=until)
    if level == "cancel":
        cancel_all(reason=reason)
    return status()


def resume() -> PauseStatus:
    """Lets the current tenant's automation go on: what was held is done now, kept events are matched in their order."""
    tenant_id = current_tenant()
    with transaction.atomic():
        before = open_pause()
        if before is not None and pauses.end_pause("tenant", tenant_id=tenant_id, actor=current_actor().name):
            audit.record("resume", f"tenant:{tenant_id}", tenant_id=tenant_id, before=_as_json(before))
            pauses.set_flags(tenant_id, hold_new=False, paused=False)
            # In a transaction of its own: an arming locks the timer before the lane.
            transaction.on_commit(partial(timers.arm_match, tenant_id))
    return status()


def pause_rule(rule_id: int, reason: str) -> None:
    """Holds one rule: it still gets its runs, and they do nothing until it is resumed. Twice does nothing more."""
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = _lock_rule(rule_id)
        opened = pauses.open_pause(
            "rule", tenant_id=tenant_id, subject_id=rule.pk, reason=reason, actor=current_actor().name
        )
        if opened is not None:
            audit.record("pause", f"rule:{rule.pk}", tenant_id=tenant_id, reason=reason, after={"level": "hold"})
            pauses.bump_rules(tenant_id)


def resume_rule(rule_id: int) -> None:
    """Ends the pause of a rule, also one that the engine itself made; its held runs go on."""
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = _lock_rule(rule_id)
        if end_rule_pause(rule):
            if rule.on or rule.off_mode == "finish":
                timers.hurry(tenant_id, rule_rows.held_runs(tenant_id, rule.pk))
            pauses.bump_rules(tenant_id)


def end_rule_pause(rule: Rule) -> bool:
    """Ends the pause of a locked rule and audits it, inside the caller's transaction; False when there was none.

    The caller hurries the held runs and makes workers read the rules anew.
    """
    before = open_pause(rule.pk)
    if before is None:
        return False
    ended = pauses.end_pause("rule", tenant_id=rule.tenant_id, subject_id=rule.pk, actor=current_actor().name)
    if ended:
        audit.record("resume", f"rule:{rule.pk}", tenant_id=rule.tenant_id, before=_as_json(before))
    return ended


def resume_due() -> int:
    """Ends the pauses of all tenants whose `until` has come; answers how many. A chore of the workers."""
    due = Pause.objects.filter(ended_at=None, until__lte=clock.now(), scope__in=["tenant", "rule"])
    found = [(tenant_id, rule_id) for tenant_id, rule_id in due.values_list("tenant_id", "subject_id") if tenant_id]
    for tenant_id, rule_id in found:
        with acting_for(tenant_id, NOBODY):
            if rule_id is None:
                resume()
            else:
                resume_rule(rule_id)
    return len(found)


def _pause_rows(tenant_id: int, *, level: str, reason: str, until: datetime | None) -> None:
    actor = current_actor().name
    before = open_pause()
    if before is not None and before.level == level and before.until == until:
        return
    if before is not None:
        pauses.end_pause("tenant", tenant_id=tenant_id, actor=actor)
    opened = pauses.open_pause("tenant", tenant_id=tenant_id, level=level, reason=reason, actor=actor, until=until)
    if opened is None:
        return  # somebody else paused at the same moment: theirs stands
    audit.record(
        "pause",
        f"tenant:{tenant_id}",
        tenant_id=tenant_id,
        reason=reason,
        before=_as_json(before),
        after={"level": level, "until": until.isoformat() if until else None},
    )
    pauses.drop_match(tenant_id)
    pauses.set_flags(tenant_id, hold_new=True, paused=level != "new")


def _as_json(pause: Pause | None) -> dict[str, Any] | None:
    if pause is None:
        return None
    return {
        "level": pause.level,
        "reason": pause.reason,
        "since": pause.since.isoformat(),
        "until": pause.until.isoformat() if pause.until else None,
    }


def _lock_rule(rule_id: int) -> Rule:
    """The rule, locked, so that two switches of it follow each other; raises `Rule.DoesNotExist`."""
    return Rule.objects.select_for_update(no_key=True).get(pk=rule_id, deleted_at=None)


__all__ = [
    "COUNTED",
    "LEVELS",
    "Cancelled",
    "Concerned",
    "PauseStatus",
    "concerned",
    "open_pause",
    "pause",
    "pause_rule",
    "resume",
    "resume_due",
    "resume_rule",
    "status",
]
