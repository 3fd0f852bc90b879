"""Cancels, pauses and resumes runs: at once where no worker is on them, else when the worker is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.states import TERMINAL_RUN
from automation.engine.operate import Refused
from automation.models import Run
from automation.store import by_hand, timers, verbs
from automation.store.verbs import LockedRun
from tenants import audit
from tenants.context import current_actor, current_tenant
from tenants.models import AuditEntry

PASSES = 3  # a run may change its state between two looks: once more, until nothing is found


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What became of runs that were to be cancelled: ended at once, or their worker asked to."""

    ended: int = 0
    asked: int = 0

    def __add__(self, other: "Cancelled") -> "Cancelled":
        return Cancelled(self.ended + other.ended, self.asked + other.asked)


def cancel(run_id: int, reason: str = "") -> Cancelled:
    """Cancels a run of the current tenant: its timers go, and what hasn't begun doesn't begin any more.

    While a worker is on it, the worker is asked and ends it within a second or at its step's deadline. Doing it twice
    does nothing more. Raises `Run.DoesNotExist`, and `Refused` for a run that ended otherwise.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        run = _locked(tenant_id, run_id)
        if run.state == "cancelled":
            return Cancelled()
        if run.state in TERMINAL_RUN:
            raise Refused(_("This run has ended already: nothing is left to cancel."))
        if run.state not in verbs.CANCELLABLE:
            raise Refused(_("This run is being undone and can't be cancelled now."))
        return _cancel_locked(tenant_id, [run], reason)


def pause(run_id: int, reason: str = "") -> bool:
    """Pauses one run by itself: its timers are held, a step under way ends and nothing follows it.

    Twice does nothing more: False. Raises `Run.DoesNotExist`, and `Refused` for a run that has ended, is being
    cancelled, or waits for a person already.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        run = _locked(tenant_id, run_id)
        if run.state == "paused":
            return False
        if run.state in TERMINAL_RUN:
            raise Refused(_("This run has ended: nothing is left to pause."))
        if run.reason == "delivery_unknown":
            raise Refused(_("This run does nothing until its dead step is decided: there is nothing to pause."))
        if run.cancel_requested_at is not None:
            raise Refused(_("This run is being cancelled."))
        verbs.lock_timers([run.id])
        if not by_hand.set_paused(run.id):
            raise Refused(_("This run is being undone and can't be paused now."))
        held = timers.hold_runs([run.id])
        _note(tenant_id, run, "pause", reason, {"state": "paused", "timers": held})
    return True


def resume(run_id: int, reason: str = "") -> bool:
    """Lets a run go on that somebody paused by itself; what fell due meanwhile is done now.

    Twice does nothing more: False. Raises `Run.DoesNotExist`, and `Refused` for a run that has ended.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        run = _locked(tenant_id, run_id)
        if run.state in TERMINAL_RUN:
            raise Refused(_("This run has ended: nothing is left to go on with."))
        if run.state != "paused":
            return False
        by_hand.set_resumed(run.id)
        released = timers.release_runs([run.id])
        _note(tenant_id, run, "resume", reason, {"timers": released})
    return True


def _locked(tenant_id: int, run_id: int) -> LockedRun:
    runs = verbs.lock_runs(tenant_id, [run_id])
    if not runs:
        raise Run.DoesNotExist
    return runs[0]


def _note(tenant_id: int, run: LockedRun, verb: str, reason: str, after: dict[str, Any]) -> None:
    audit.record(
        verb,
        f"run:{run.id}",
        tenant_id=tenant_id,
        reason=reason,
        before={"state": run.state, "reason": run.reason},
        after=after,
    )


def cancel_all(*, rule_id: int | None = None, before_version: int | None = None, reason: str = "") -> Cancelled:
    """Cancels each live run of the current tenant, or of one of its rules, in batches of a transaction each.

    With the id of a version, those only that are on versions older than it.

    Call it outside a transaction, after the switch that keeps new runs from starting. Idempotent.
    """
    tenant_id = current_tenant()
    total = Cancelled()
    for _pass in range(PASSES):
        before = total
        for run_ids in verbs.live_runs(tenant_id, rule_id=rule_id, before_version=before_version):
            total += cancel_batch(run_ids, reason)
        if total == before:
            break
    return total


def cancel_batch(run_ids: Sequence[int], reason: str) -> Cancelled:
    """Cancels those of the current tenant's runs that can be cancelled, in one transaction: a few hundred at most."""
    tenant_id = current_tenant()
    with transaction.atomic():
        runs = [run for run in verbs.lock_runs(tenant_id, run_ids) if run.state in verbs.CANCELLABLE]
        return _cancel_locked(tenant_id, runs, reason)


def _cancel_locked(tenant_id: int, runs: Sequence[LockedRun], reason: str) -> Cancelled:
    """Runs under their locks: those with a leased timer have a worker on them, which alone may end them."""
    states = verbs.lock_timers([run.id for run in runs])
    busy = [run for run in runs if "leased" in states.get(run.id, ())]
    asked = [run for run in busy if run.cancel_requested_at is None]
    free = [run for run in runs if run not in busy]
    if asked:
        verbs.request_cancel([run.id for run in asked])
    if free:
        verbs.cancel_runs([run.id for run in free], actor=current_actor().name)
    _audit(tenant_id, free, "cancelled", reason)
    _audit(tenant_id, asked, "cancel_requested", reason)
    return Cancelled(len(free), len(asked))


def _audit(tenant_id: int, runs: Sequence[LockedRun], became: str, reason: str) -> None:
    actor = current_actor()
    AuditEntry.objects.bulk_create(
        AuditEntry(
            tenant_id=tenant_id,
            actor_id=actor.id,
            actor_name=actor.name,
            verb="cancel",
            target=f"run:{run.id}",
            reason=reason,
            before={"state": run.state, "reason": run.reason},
            after={"state": became},
        )
        for run in runs
    )
