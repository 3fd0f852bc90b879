"""Retries or gives up what failed for good and waits for a person: one dead letter, or many in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.engine.operate.endings import tell_failed
from automation.models import DeadLetter, Rule
from automation.store import letters as rows
from automation.store import timers, verbs
from automation.store.timers import NewTimer
from automation.store.verbs import LockedRun
from tenants.context import current_actor, current_tenant
from tenants.models import AuditEntry

RETRIED, RETRIED_AS_NEW, DISCARDED = "retried", "retried_as_new", "discarded"
RESOLUTIONS = {"retry": RETRIED, "retry_as_new": RETRIED_AS_NEW, "discard": DISCARDED}
PARKED = "delivery_unknown"


@dataclass(slots=True)
class Worked:
    """What became of dead letters: those done, those that needed nothing, and why others were refused."""

    done: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


def retry(dead_letter_id: int, *, as_new: bool = False, due_at: datetime | None = None, reason: str = "") -> bool:
    """Lets the run go on at its dead step, with all its attempts again and, unless `as_new`, under the same key.

    Steps before it aren't repeated. `as_new` raises the epoch: a receiver takes it for another effect. An event that
    was set aside is matched again. Twice does nothing more, and answers False. Raises `DeadLetter.DoesNotExist`, and
    `Refused` where the run has gone on or was given up.
    """
    verb = "retry_as_new" if as_new else "retry"
    return _one(dead_letter_id, verb, due={} if due_at is None else {dead_letter_id: due_at}, reason=reason)


def discard(dead_letter_id: int, *, reason: str = "") -> bool:
    """Gives a dead step up: its run stays failed, a run that waited for the decision fails now.

    Twice does nothing more, and answers False. Raises `DeadLetter.DoesNotExist`, and `Refused` for one that was
    retried or cancelled.
    """
    return _one(dead_letter_id, "discard", reason=reason)


def _one(dead_letter_id: int, verb: str, *, due: Mapping[int, datetime] | None = None, reason: str = "") -> bool:
    if not DeadLetter.objects.filter(pk=dead_letter_id).exists():
        raise DeadLetter.DoesNotExist
    with transaction.atomic():
        worked = work_off([dead_letter_id], verb, due=due, reason=reason)
    for refusal in worked.refused.values():
        raise Refused(refusal)
    return bool(worked.done)


def work_off(
    dead_letter_ids: Sequence[int],
    verb: str,
    *,
    due: Mapping[int, datetime] | None = None,
    bulk_id: int | None = None,
    reason: str = "",
) -> Worked:
    """Does "retry", "retry_as_new" or "discard" to dead letters of the tenant, inside the caller's transaction.

    `due` says when each is tried again (now, if it doesn't). Those that are done already need nothing.
    """
    tenant_id, worked = current_tenant(), Worked()
    found, runs = _locked(tenant_id, dead_letter_ids)
    moved_on = {} if verb == "discard" else _moved_on(found, runs)
    chosen = []
    for letter in found:
        if letter.resolution == RESOLUTIONS[verb] or {letter.resolution, RESOLUTIONS[verb]} == {
            RETRIED,
            RETRIED_AS_NEW,
        }:
            continue
        refusal = _resolved(letter) or moved_on.get(letter.pk, "")
        if refusal:
            worked.refused[letter.pk] = refusal
        else:
            chosen.append(letter)
    if chosen:
        worked.done = [letter.pk for letter in chosen]
        _write(tenant_id, chosen, runs, verb, due=due or {}, bulk_id=bulk_id)
        _audit(tenant_id, chosen, verb, reason=reason, bulk_id=bulk_id)
    return worked


def _locked(tenant_id: int, dead_letter_ids: Sequence[int]) -> tuple[list[DeadLetter], dict[int, LockedRun]]:
    """The dead letters as they stand once their runs are locked, and those runs."""
    wanted = DeadLetter.objects.filter(pk__in=dead_letter_ids)
    run_ids = [one for one in wanted.values_list("run_id", flat=True) if one is not None]
    runs = {run.id: run for run in verbs.lock_runs(tenant_id, run_ids)}
    return list(wanted.select_for_update(no_key=True).order_by("id")), runs


def _resolved(letter: DeadLetter) -> str:
    """Why a letter is nothing to be done about any more; "" for an open one."""
    if letter.resolved_at is None:
        return ""
    reasons = {
        "cancelled": _("The run was cancelled: nothing is left to do."),
        "rule_deleted": _("The rule was deleted: nothing is left to do."),
        "expired": _("This run has outlived its longest life."),
        "completed": _("A person has completed the step by hand."),
        "skipped": _("A person has skipped the step."),
        DISCARDED: _("This was given up already."),
        RETRIED: _("This was retried already."),
        RETRIED_AS_NEW: _("This was retried already."),
    }
    return str(reasons.get(letter.resolution, _("This was resolved already.")))


def _moved_on(letters: Sequence[DeadLetter], runs: Mapping[int, LockedRun]) -> dict[int, str]:
    """Why a run can't go on at its dead step, by dead letter: only where that step is what stopped it, it can."""
    deleted = set(
        Rule.objects.filter(pk__in={run.rule_id for run in runs.values()}, deleted_at__isnull=False).values_list(
            "pk", flat=True
        )
    )
    gone_on = has_gone_on([letter for letter in letters if letter.step_id is not None])
    found: dict[int, str] = {}
    for letter in letters:
        run = runs.get(letter.run_id or 0)
        if run is None or letter.step_id is None:
            continue
        if run.rule_id in deleted:
            found[letter.pk] = _("The rule of this run was deleted.")
        elif run.expired:
            found[letter.pk] = _("This run has outlived its longest life.")
        elif letter.pk in gone_on or not (run.state == "failed" or _is_parked(run)):
            found[letter.pk] = _("The run has gone on without this step, so it can't be repeated.")
    return found


def has_gone_on(letters: Sequence[DeadLetter]) -> set[int]:
    """Those of the dead letters whose runs have steps that are live, or that ended after the dead one."""
    return rows.gone_on([letter.pk for letter in letters])


def _is_parked(run: LockedRun) -> bool:
    return run.state == "waiting" and run.reason == PARKED


def _write(
    tenant_id: int,
    letters: Sequence[DeadLetter],
    runs: Mapping[int, LockedRun],
    verb: str,
    *,
    due: Mapping[int, datetime],
    bulk_id: int | None,
) -> None:
    of_steps = [letter for letter in letters if letter.step_id is not None and letter.run_id in runs]
    if verb == "discard":
        parked = [runs[letter.run_id].id for letter in of_steps if letter.run_id and _is_parked(runs[letter.run_id])]
        tell_failed(tenant_id, parked, reason=PARKED)
        verbs.fail_runs(parked, reason=PARKED)
    else:
        _revive(of_steps, as_new=verb == "retry_as_new")
        _match_again(tenant_id, [letter for letter in letters if letter not in of_steps])
    rows.resolve([one.pk for one in letters], resolution=RESOLUTIONS[verb], actor=current_actor().name, bulk_id=bulk_id)
    if verb != "discard":
        timers.set_timers(
            [
                NewTimer(tenant_id, "step", due.get(letter.pk), run_id=letter.run_id, step_id=letter.step_id)
                for letter in of_steps
            ]
        )


def _revive(letters: Sequence[DeadLetter], *, as_new: bool) -> None:
    step_ids = [letter.step_id for letter in letters if letter.step_id is not None]
    run_ids = sorted({letter.run_id for letter in letters if letter.run_id is not None})
    if verbs.revive_steps(step_ids, as_new=as_new) != len(step_ids) or verbs.revive_runs(run_ids) != len(run_ids):
        raise Refused(_("The step is no longer waiting for a person."))


def _match_again(tenant_id: int, letters: Sequence[DeadLetter]) -> None:
    events = [letter.event_id for letter in letters if letter.event_id is not None]
    if len(events) != len(letters) or verbs.unmatch(events) != len(events):
        raise Refused(_("The event waits to be matched already."))
    if events:
        transaction.on_commit(partial(timers.arm_match, tenant_id))


def _audit(tenant_id: int, letters: Sequence[DeadLetter], verb: str, *, reason: str, bulk_id: int | None) -> None:
    actor, job = current_actor(), {} if bulk_id is None else {"bulk": bulk_id}
    AuditEntry.objects.bulk_create(
        AuditEntry(
            tenant_id=tenant_id,
            actor_id=actor.id,
            actor_name=actor.name,
            verb="discard" if verb == "discard" else "retry",
            reason=reason,
            target=f"dead_letter:{letter.pk}",
            before={"run": letter.run_id, "step": letter.step_id, "event": letter.event_id, "reason": letter.reason},
            after={"resolution": RESOLUTIONS[verb], **job},
        )
        for letter in letters
    )
