"""Postpones a waiting timer, makes it due now, or cancels what waits for it."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused, runs
from automation.models import Drip, Timer
from automation.store import by_hand, clock, verbs
from automation.store.by_hand import TimerByHand
from tenants import audit
from tenants.context import current_tenant


def postpone(timer_id: int, *, until: datetime, step_id: int | None = None, reason: str = "") -> bool:
    """Puts a waiting step off, or brings it forward, to a moment to come; of a paused run, too.

    `step_id` is the step that the caller saw: a timer serves one step after the other, and another one is refused.
    The same moment twice does nothing more: False. Raises `Timer.DoesNotExist` where the tenant has none of that id (it
    may have been done), and `Refused` for a moment that is past or after the run's end, for what a pause has
    put aside, and while a worker is on it.
    """
    with transaction.atomic():
        timer = _locked(timer_id, step_id)
        if until <= clock.now():
            raise Refused(_("This time is past already."))
        if timer.deadline_at is not None and until > timer.deadline_at:
            raise Refused(_("The run's longest life ends before that."))
        if timer.due_at == until:
            return False
        if timer.state == "held" and _refuse_shelved(timer_id):
            raise Refused(_("It goes on in its turn after a pause: it can be run now, or cancelled."))
        by_hand.move_timer(timer, until)
        _audit(timer, "postpone", reason, until)
    return True


def run_now(timer_id: int, *, step_id: int | None = None, reason: str = "") -> bool:
    """Makes a waiting step due at once: a delay ends, a retry is tried. One that is due already stays: False.

    Raises as `postpone`, and `Refused` for a paused run, which has to be resumed first.
    """
    with transaction.atomic():
        timer = _locked(timer_id, step_id)
        now = clock.now()
        if timer.state == "held":
            if timer.run_state == "paused":
                raise Refused(_("This run is paused: let it go on first."))
            _refuse_shelved(timer_id)
            by_hand.release_timer(timer, now)  # held by a pause that has ended, and not yet its turn
        elif timer.due_at > now:
            by_hand.move_timer(timer, now)
        else:
            return False
        _audit(timer, "run_now", reason, now)
    return True


def cancel(timer_id: int, *, step_id: int | None = None, reason: str = "") -> runs.Cancelled:
    """Cancels what waits for the timer: its run ends as cancelled. Raises as `postpone`."""
    with transaction.atomic():
        timer = _locked(timer_id, step_id)
        return runs.cancel(timer.run_id or 0, reason)


def _locked(timer_id: int, step_id: int | None) -> TimerByHand:
    """The timer under the lock of its run and its own."""
    tenant_id = current_tenant()
    found = by_hand.run_of_timer(tenant_id, timer_id)
    if found is None:
        raise Timer.DoesNotExist
    run_id, kind = found
    if run_id is None:
        refusals = {
            "match": _("This timer matches events: pause the tenant to hold them."),
            "deliver": _("This timer sends a notice: it can't be moved."),
        }
        raise Refused(refusals.get(kind, _("This timer belongs to no run.")))
    locked = verbs.lock_runs(tenant_id, [run_id])
    timer = by_hand.lock_timer(tenant_id, timer_id)
    if timer is None or not locked or timer.run_id != run_id:
        raise Timer.DoesNotExist
    if step_id is not None and timer.step_id != step_id:
        raise Refused(_("What this timer stood for has been done: the run waits for another step now."))
    if timer.state == "leased":
        raise Refused(_("A worker is on it already."))
    if locked[0].cancel_requested_at is not None:
        raise Refused(_("This run is being cancelled."))
    return timer


def _refuse_shelved(timer_id: int) -> bool:
    """Raises `Refused` for a timer on a shelf; answers whether a drip lets it out."""
    drip = Drip.objects.filter(pk__in=Timer.objects.filter(pk=timer_id).values("drip_id")).first()
    if drip is not None and drip.next_at is None:
        raise Refused(_("Its rule, or a connection that it uses, is stopped: let that go on first."))
    return drip is not None


def _audit(timer: TimerByHand, verb: str, reason: str, due_at: datetime) -> None:
    audit.record(
        verb,
        f"run:{timer.run_id}",
        tenant_id=current_tenant(),
        reason=reason,
        before={"timer": timer.id, "step": timer.step_id, "kind": timer.kind, "due_at": timer.due_at.isoformat()},
        after={"due_at": due_at.isoformat()},
    )
