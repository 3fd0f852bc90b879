"""Retries or gives up what failed for good and waits for a person."""

from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from automation.core.states import TERMINAL_STEP
from automation.engine.operate import Refused
from automation.models import DeadLetter, Rule, StepExecution
from automation.store import timers, verbs
from automation.store.timers import NewTimer
from automation.store.verbs import LockedRun
from tenants import audit
from tenants.context import current_actor, current_tenant

RETRIED, RETRIED_AS_NEW, DISCARDED = "retried", "retried_as_new", "discarded"
PARKED = "delivery_unknown"


def retry(dead_letter_id: int, *, as_new: bool = False) -> None:
    """Lets the run go on at its dead step, with all its attempts again and, unless `as_new`, under the same key.

    Steps before it aren't repeated. `as_new` raises the epoch: a receiver takes it for another effect. An event that
    was set aside is matched again. Twice does nothing more. Raises `DeadLetter.DoesNotExist`, and `Refused` where the
    run has gone on or was given up.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        letter, run = _locked(tenant_id, dead_letter_id)
        if letter.resolution in (RETRIED, RETRIED_AS_NEW):
            return
        _refuse_resolved(letter)
        resolution = RETRIED_AS_NEW if as_new else RETRIED
        if run is None or letter.step_id is None:
            _match_again(tenant_id, letter)
        else:
            _refuse_moved_on(letter, run)
            if not verbs.revive_step(letter.step_id, as_new=as_new) or not verbs.revive_run(run.id):
                raise Refused(_("The step is no longer waiting for a person."))
        _close(tenant_id, letter, verb="retry", resolution=resolution)
        if run is not None and letter.step_id is not None:
            timers.set_timers([NewTimer(tenant_id, "step", None, run_id=run.id, step_id=letter.step_id)])


def discard(dead_letter_id: int) -> None:
    """Gives a dead step up: its run stays failed, a run that waited for the decision fails now.

    Twice does nothing more. Raises `DeadLetter.DoesNotExist`, and `Refused` for one that was retried or cancelled.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        letter, run = _locked(tenant_id, dead_letter_id)
        if letter.resolution == DISCARDED:
            return
        _refuse_resolved(letter)
        if run is not None and _is_parked(run):
            verbs.fail_run(run.id, reason=PARKED)
        _close(tenant_id, letter, verb="discard", resolution=DISCARDED)


def _locked(tenant_id: int, dead_letter_id: int) -> tuple[DeadLetter, LockedRun | None]:
    """The dead letter as it stands once its run is locked, and that run."""
    run_id = DeadLetter.objects.values_list("run_id", flat=True).get(pk=dead_letter_id)
    runs = verbs.lock_runs(tenant_id, [run_id]) if run_id is not None else []
    letter = DeadLetter.objects.select_for_update(no_key=True).get(pk=dead_letter_id)
    return letter, runs[0] if runs else None


def _refuse_resolved(letter: DeadLetter) -> None:
    if letter.resolved_at is None:
        return
    reasons = {
        "cancelled": _("The run was cancelled: nothing is left to do."),
        DISCARDED: _("This was given up already."),
        RETRIED: _("This was retried already."),
        RETRIED_AS_NEW: _("This was retried already."),
    }
    raise Refused(reasons.get(letter.resolution, _("This was resolved already.")))


def _refuse_moved_on(letter: DeadLetter, run: LockedRun) -> None:
    """A run goes on at its dead step only where that step is what stopped it."""
    if Rule.objects.filter(pk=run.rule_id, deleted_at__isnull=False).exists():
        raise Refused(_("The rule of this run was deleted."))
    if run.expired:
        raise Refused(_("This run has outlived its longest life."))
    stopped = run.state == "failed" or _is_parked(run)
    if not stopped or _has_gone_on(letter):
        raise Refused(_("The run has gone on without this step, so it can't be repeated."))


def _has_gone_on(letter: DeadLetter) -> bool:
    step = StepExecution.objects.get(dead_letters=letter)
    others = StepExecution.objects.filter(run_id=step.run_id).exclude(pk=step.pk)
    return others.filter(~Q(state__in=TERMINAL_STEP) | Q(ended_at__gt=step.ended_at)).exists()


def _is_parked(run: LockedRun) -> bool:
    return run.state == "waiting" and run.reason == PARKED


def _match_again(tenant_id: int, letter: DeadLetter) -> None:
    if letter.event_id is None or not verbs.unmatch(letter.event_id):
        raise Refused(_("The event waits to be matched already."))
    transaction.on_commit(partial(timers.arm_match, tenant_id))


def _close(tenant_id: int, letter: DeadLetter, *, verb: str, resolution: str) -> None:
    if not verbs.resolve(letter.pk, resolution=resolution, actor=current_actor().name):
        raise Refused(_("This was resolved already."))
    audit.record(
        verb,
        f"dead_letter:{letter.pk}",
        tenant_id=tenant_id,
        before={"run": letter.run_id, "step": letter.step_id, "event": letter.event_id, "reason": letter.reason},
        after={"resolution": resolution},
    )
