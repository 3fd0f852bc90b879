"""Completes a step by hand or skips it: the run goes on, and a worker that is still on the step comes too late."""

import json
from typing import Any, Literal

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.decisions import Settled
from automation.core.planner import following
from automation.core.states import LIVE_RUN, TERMINAL_STEP
from automation.core.values import clean
from automation.engine.operate import Refused, onward
from automation.engine.operate.dead_letters import has_gone_on
from automation.models import DeadLetter, Rule, StepExecution
from automation.store import by_hand, letters, verbs
from automation.store.by_hand import StepByHand
from automation.store.verbs import LockedRun
from tenants import audit
from tenants.context import current_actor, current_tenant
from tenants.models import AuditEntry

LARGEST_OUTPUT = 64 * 1024  # bytes of JSON, as for any step
RESOLUTIONS = {"complete": "completed", "skip": "skipped"}


def complete(step_id: int, *, output: dict[str, Any] | None = None, reason: str = "") -> bool:
    """Says that a step was done by hand, with what later steps read as its output; its run goes on after it.

    It may be dead, due, waiting (a delay ends), retrying, or under way: then its worker's outcome is refused, this one
    stays. Twice does nothing more: False. Raises `StepExecution.DoesNotExist`, and `Refused` for a step that has ended,
    for a branch (only its conditions decide), and for an output that isn't a JSON object of up to 64 KB.
    """
    return _by_hand(step_id, "complete", output=_checked(output), reason=reason)


def skip(step_id: int, *, reason: str = "") -> bool:
    """Leaves a step out: its run goes on after it; of a branch all arms are left out. Otherwise as `complete`."""
    return _by_hand(step_id, "skip", output=None, reason=reason)


def _by_hand(step_id: int, verb: Literal["complete", "skip"], *, output: dict[str, Any] | None, reason: str) -> bool:
    tenant_id = current_tenant()
    state: Literal["succeeded", "skipped"] = "succeeded" if verb == "complete" else "skipped"
    with transaction.atomic():
        run_id = StepExecution.objects.values_list("run_id", flat=True).get(pk=step_id)
        locked = verbs.lock_runs(tenant_id, [run_id])[0]
        step = by_hand.step(run_id, step_id)
        if step is None or _was_done(step, verb):
            return False
        letter = DeadLetter.objects.filter(step_id=step_id, resolved_at=None).first()
        _refuse(locked, step, letter)
        run = onward.in_hand(run_id)
        node = run.node(step.path)
        if node is None or (node.kind == "branch" and verb == "complete"):
            raise Refused(_("Only the conditions of a branch decide where it leads; it can be skipped."))
        lane_id = by_hand.take_timer(step_id)
        if not by_hand.settle_step(step_id, state=state, output=output, effect_state=_effect(step, verb)):
            raise Refused(_("The step has ended meanwhile."))
        if letter is not None:
            letters.resolve([letter.pk], resolution=RESOLUTIONS[verb], actor=current_actor().name)
        if locked.state == "failed":
            verbs.revive_runs([run_id])
            run.was = "running"
        _audit(tenant_id, step, verb, locked=locked, reason=reason)
        onward.go_on(run, following(run.spec, node.index, Settled(step.path, state)))
        if lane_id is not None:
            by_hand.free_place(lane_id)
    return True


def _checked(output: dict[str, Any] | None) -> dict[str, Any] | None:
    if output is None:
        return None
    if not isinstance(output, dict):
        raise Refused(_("The output of a step is a JSON object."))
    try:
        size = len(json.dumps(output))
    except (TypeError, ValueError) as error:
        raise Refused(_("The output of a step is a JSON object.")) from error
    if size > LARGEST_OUTPUT:
        raise Refused(_("The output of a step has at most 64 KB."))
    cleaned: dict[str, Any] = clean(output)
    return cleaned


def _was_done(step: StepByHand, verb: str) -> bool:
    """Whether a person has done just this already."""
    done = AuditEntry.objects.filter(target=f"run:{step.run_id}", verb=verb, after__step=step.id)
    return step.state in TERMINAL_STEP and done.exists()


def _refuse(run: LockedRun, step: StepByHand, letter: DeadLetter | None) -> None:
    if Rule.objects.filter(pk=run.rule_id, deleted_at__isnull=False).exists():
        raise Refused(_("The rule of this run was deleted."))
    if run.expired:
        raise Refused(_("This run has outlived its longest life."))
    if run.cancel_requested_at is not None and run.state in LIVE_RUN:
        raise Refused(_("This run is being cancelled."))
    if step.state == "dead":
        _refuse_dead(run, letter)
    elif step.state in TERMINAL_STEP:
        raise Refused(_("This step has ended already, and the run has gone on from it."))
    elif run.state not in LIVE_RUN:
        raise Refused(_("This run has ended."))


def _refuse_dead(run: LockedRun, letter: DeadLetter | None) -> None:
    if letter is None:
        raise Refused(_("This was resolved already."))
    stopped = run.state == "failed" or (run.state == "waiting" and run.reason == "delivery_unknown")
    if not stopped or has_gone_on([letter]):
        raise Refused(_("The run has gone on without this step."))


def _effect(step: StepByHand, verb: str) -> str:
    """A person who completes an effect says that it happened; who skips it, leaves open what was on its way."""
    if step.effect_state not in ("intended", "uncertain"):
        return step.effect_state
    return "confirmed" if verb == "complete" else "uncertain"


def _audit(tenant_id: int, step: StepByHand, verb: str, *, locked: LockedRun, reason: str) -> None:
    """Without the output: it is the step's, goes with it and is erased in it, while the audit stays."""
    audit.record(
        verb,
        f"run:{step.run_id}",
        tenant_id=tenant_id,
        reason=reason,
        before={"step": step.id, "path": step.path, "state": step.state, "run": locked.state},
        after={"step": step.id, "path": step.path, "state": RESOLUTIONS[verb]},
    )
