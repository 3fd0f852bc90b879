"""Says in a sentence what a run waits for, and where its timer stands in the line."""

from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import Q
from django.utils import formats
from django.utils.translation import gettext as _

from automation.models import Connection, Pause, Rule, Run
from tenants.models import AuditEntry

PLACES = 1000  # a place in the line is counted to here


class TimerRow(NamedTuple):
    """A timer of a run; `ahead` counts the due timers before it in its lane, to `PLACES` at most."""

    step_id: int
    kind: str
    state: str
    due_at: datetime
    is_due: bool
    deliveries: int
    lost: int
    worker: str
    deadline_at: datetime | None
    ahead: int | None


def timers(run_id: int) -> dict[int, TimerRow]:
    """The timers of a run by step; those that are due and pending know their place in the line."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.step_id, x.kind, x.state, x.due_at, x.due_at <= automation_now(), x.deliveries, x.lost,"
            " COALESCE(w.host || ':' || w.pid, x.worker_id::text, ''), x.deadline_at,"
            " CASE WHEN x.state = 'pending' AND x.due_at <= automation_now() THEN"
            " (SELECT count(*) FROM (SELECT 1 FROM automation_timer y WHERE y.lane_id = x.lane_id"
            " AND y.state = 'pending' AND (y.due_at, y.id) < (x.due_at, x.id) LIMIT %s) before) END"
            " FROM automation_timer x LEFT JOIN automation_worker w ON w.id = x.worker_id"
            " WHERE x.step_id IN (SELECT s.id FROM automation_stepexecution s WHERE s.run_id = %s)",
            [PLACES, run_id],
        )
        return {row[0]: TimerRow(*row) for row in cursor.fetchall()}


def sentence(run: Run, rule: Rule, found: dict[int, TimerRow], zone: ZoneInfo) -> str:
    """Why a run that hasn't ended is where it is; "" for one that has."""
    if run.ended_at is not None:
        return ""
    if run.reason == "delivery_unknown":
        return _("Waits for a person: nobody knows whether the last step took effect.")
    timer = min(found.values(), key=lambda one: one.due_at, default=None)
    if timer is None:
        return ""
    if timer.state == "leased":
        return _working(run, timer)
    held = _held(run, rule, on_shelf=timer.state == "held")
    if not held and timer.state == "held":
        return _("Was held by a pause that has ended, and comes in its turn: what was held goes on at a rate.")
    return held or _outside(run, timer, zone) or _in_line(timer, zone)


def _working(run: Run, timer: TimerRow) -> str:
    if run.cancel_requested_at is not None:
        return _("Is being cancelled: worker %s ends it as soon as its step returns.") % timer.worker
    return _("Is being worked on by %s.") % timer.worker


def _held(run: Run, rule: Rule, *, on_shelf: bool) -> str:
    """What keeps the run from going on although its time may have come."""
    if run.state == "paused":
        entry = (
            AuditEntry.objects.filter(tenant_id=run.tenant_id, target=f"run:{run.pk}", verb="pause")
            .order_by("id")
            .last()
        )
        return _because(_("Is held: this run was paused by itself."), entry.reason if entry else "")
    over = Q(tenant_id=run.tenant_id, scope__in=["tenant", "rule"]) | Q(scope="installation")
    for pause in Pause.objects.filter(over, ended_at=None, level__in=["hold", "cancel"]).order_by("-scope"):
        if pause.scope == "installation":
            return _because(_("Is held: the whole installation is paused."), pause.reason)
        if pause.scope == "tenant":
            return _because(_("Is held: the tenant's automations are paused."), pause.reason)
        if pause.subject_id == rule.pk:
            return _because(_("Is held: the rule is paused."), pause.reason)
    if not rule.on and rule.off_mode == "hold":
        return _("Is held: the rule is off.")
    if (run.reason == "paused" or on_shelf) and _waits_for_connection(run):
        return _("Is held: a connection that its step uses is paused.")
    return ""


def _outside(run: Run, timer: TimerRow, zone: ZoneInfo) -> str:
    """What a run says that was held back for an outside system."""
    if run.reason != "endpoint_down":
        return ""
    down = Connection.objects.filter(tenant_id=run.tenant_id).exclude(breaker="closed").order_by("name")
    names = ", ".join(f"“{one.name}”" for one in down)
    if not names:
        return _("Waits for a connection that has as many calls on their way as it may have: until one comes back.")
    if all(one.breaker == "off" for one in down):
        return _("Waits for an outside system: the connection %s was switched off after a day of failures.") % names
    moment = formats.date_format(timer.due_at.astimezone(zone), "j M Y, H:i:s")
    return _("Waits for an outside system that does not answer (%(names)s), and looks again at %(moment)s.") % {
        "names": names,
        "moment": moment,
    }


def _waits_for_connection(run: Run) -> bool:
    return Pause.objects.filter(tenant_id=run.tenant_id, scope="connection", ended_at=None).exists()


def _because(text: str, reason: str) -> str:
    return _("%(text)s Reason given: %(reason)s") % {"text": text, "reason": reason} if reason else text


def _in_line(timer: TimerRow, zone: ZoneInfo) -> str:
    if timer.ahead is None:
        return _until(timer, zone)
    if timer.ahead >= PLACES:
        return _("Is due and waits in line: more than %d steps of this tenant are before it.") % PLACES
    if timer.ahead == 0:
        return _("Is due and next in the tenant's line.")
    return _("Is due and waits in line: %d steps of this tenant are before it.") % timer.ahead


def _until(timer: TimerRow, zone: ZoneInfo) -> str:
    moment = formats.date_format(timer.due_at.astimezone(zone), "j M Y, H:i:s")
    if timer.kind == "retry":
        return _("Failed and is tried again at %s.") % moment
    return _("Waits until %s.") % moment
