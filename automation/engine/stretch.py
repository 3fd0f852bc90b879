"""Does a run's local steps in their order, up to the first step that has to wait or to go outside."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog
from django.db import DataError, Error, IntegrityError

from automation import failpoints
from automation.catalog.action import Action, Outcome
from automation.core import causes
from automation.core.conditions import Verdict
from automation.core.decisions import Choose, Fail, Finish, Perform, Settled, Skip, Sleep, Stop
from automation.core.errors import TemplateError
from automation.core.moments import Moment
from automation.core.planner import decide_at, following
from automation.core.spec import Condition, Node
from automation.engine.filling import fill
from automation.engine.judged import judged_on
from automation.engine.local import STAYING, LocalDoor, RecordInHand, Refused, in_savepoint
from automation.engine.progress import RunInHand, StepInHand
from automation.engine.rendering import in_time
from automation.store.runs import StepRow
from automation.store.waves import NewAttempt, NewStep, StepChange, Wave

log = structlog.get_logger(__name__)


class Faulty(Exception):
    """An action failed in the middle, as none should; what it wrote until then must go, too."""


# What makes a transaction be done again with a savepoint around each action, so that the bad step fails alone.
UNDOING = (DataError, IntegrityError, Faulty)
FOREIGN_KEY = "23503"


@dataclass(slots=True)
class Stretch:
    """How far a run got: the index of the node that comes next (None at the end), or the step that failed."""

    run: RunInHand
    next: int | None = None
    failed: StepInHand | None = None
    outcome: Outcome | None = None
    stops_later: bool = False
    wave: Wave = field(default_factory=Wave)


def walk(
    run: RunInHand,
    start: int | None,
    record: RecordInHand | None,
    *,
    ids: Callable[[], int],
    existing: StepRow | None = None,
    careful: bool = False,
) -> Stretch:
    """Executes nodes from `start` on while they are local; `existing` is the row of the first, where there is one.

    `careful` puts a savepoint around each action: for the second try, after one of `UNDOING`.
    """
    done = Stretch(run=run, next=start)
    door = _door(run, record) if record is not None else None
    row = existing
    while done.next is not None:
        if _waits(run.spec.nodes[done.next]):
            break
        decision = decide_at(run.spec, done.next, _judge_of(run))
        if isinstance(decision, Finish | Fail | Sleep):
            break
        node = decision.node
        step = StepInHand(node=node, id=row.id if row else ids(), row=row, attempts=row.attempts if row else 0)
        row = None
        if isinstance(decision, Perform):
            if not _act(done, step, door, careful=careful):
                break
        else:
            done.next = _pass(done, step, decision)
    if door is not None:
        door.flush()
    return done


def _door(run: RunInHand, record: RecordInHand) -> LocalDoor:
    event = run.event
    cause = causes.child(
        event.cause,
        event_id=event.id,
        rule_id=run.rule.rule_id,
        run_id=run.id,
        step_id=None,
        record_key=event.record_key,
    )
    return LocalDoor(
        record=record,
        tenant_id=event.tenant_id,
        record_key=event.record_key,
        now=run.now,
        zone=run.tenant.zone,
        actor_name=run.rule.name,
        cause=cause,
    )


def _act(done: Stretch, step: StepInHand, door: LocalDoor | None, *, careful: bool) -> bool:
    """Performs one local action; False when it failed and the stretch ends before it."""
    run, node = done.run, step.node
    outcome = _perform(run, step, door, careful=careful)
    step.attempts += 1
    failpoints.hit("match.local_step")
    if outcome.state == "done":
        _write(done.wave, run, step, "succeeded", output=outcome.kept(), attempt="ok")
        run.outputs[node.path] = outcome.output
    elif outcome.state == "skipped":
        _write(done.wave, run, step, "skipped", reason=outcome.reason, output=outcome.kept(), attempt="ok")
    else:
        done.failed, done.outcome = step, outcome
        done.wave.attempts.append(
            NewAttempt(run.event.tenant_id, step.id, step.attempts, None, 0, "failed", answer=outcome.error[:1000])
        )
        return False
    done.next = node.next
    return True


def _perform(run: RunInHand, step: StepInHand, door: LocalDoor | None, *, careful: bool) -> Outcome:
    action = run.rule.action(step.node)
    if action is None or door is None or door.record.values is None:
        return Outcome.skipped("record_gone")
    door.cause = _at_step(door.cause, step.id)
    before = door.mark()
    outcome = _outcome_of(run, step, action, door, careful=careful).cleaned()
    if outcome.state not in STAYING:
        if door.written and not careful:
            raise Faulty
        door.back_to(before)
    return outcome


def _outcome_of(run: RunInHand, step: StepInHand, action: Action, door: LocalDoor, *, careful: bool) -> Outcome:
    """The outcome of an action, whatever it raises; one of `UNDOING` is an outcome on the careful try only."""
    try:
        constant = run.rule.constant(step.node, action)
        if constant is not None:
            params, step.input = run.rule.params(step.node, action), dict(constant)
        else:
            params = in_time(door.record, partial(fill, run, step.node, action))
            step.input = params.model_dump(mode="json")
        act = partial(action.perform, params, door)
        return in_savepoint(door, act) if careful else act()
    except Exception as error:
        refused = _refused(error)
        if refused is not None:
            return refused
        if isinstance(error, Error) and not (careful and isinstance(error, UNDOING)):
            raise
        if not careful:
            raise Faulty from error
        return _faulty(error, step, run)


def _refused(error: Exception) -> Outcome | None:
    """The outcome of what an action is expected to raise; None for anything else."""
    if isinstance(error, TemplateError):
        return Outcome.rejected(str(error), reason="template_error")
    if isinstance(error, Refused):
        gone = error.reason == "record_gone"
        return Outcome.skipped(error.reason) if gone else Outcome.rejected(str(error), error.reason)
    return Outcome.rejected(_first_line(error)) if isinstance(error, ValueError) else None


def _faulty(error: Exception, step: StepInHand, run: RunInHand) -> Outcome:
    """What the database refuses it always will; a fault of the action's own may be mended until the next try."""
    if isinstance(error, Error):
        unlinked = getattr(error.__cause__, "sqlstate", "") == FOREIGN_KEY
        return Outcome.rejected("A value names a record that doesn't exist." if unlinked else _first_line(error))
    log.error("faulty action", action=step.node.action, run_id=run.id, error=f"{type(error).__name__}: {error}"[:500])
    return Outcome.retry(f"{type(error).__name__}: {error}")


def _at_step(cause: causes.Cause, step_id: int) -> causes.Cause:
    return cause if cause.step_id is not None else replace(cause, step_id=step_id)


def _waits(node: Node) -> bool:
    """Whether a node isn't for this stretch: it goes outside, or sleeps."""
    return not node.off and (node.kind == "delay" or (node.kind == "action" and not node.local))


def _judge_of(run: RunInHand) -> Callable[[Condition], Verdict]:
    def judge(condition: Condition) -> Verdict:
        return run.rule.arm(condition)(run.facts(), Moment(now=run.now, zone=run.tenant.zone))

    return judge


def _pass(done: Stretch, step: StepInHand, decision: Skip | Stop | Choose) -> int | None:
    """Writes a step that acts on nothing, and says where the run goes on."""
    node = step.node
    if isinstance(decision, Skip):
        _write(done.wave, done.run, step, "skipped")
        return following(done.run.spec, node.index, Settled(node.path, "skipped"))
    if isinstance(decision, Stop):
        _write(done.wave, done.run, step, "succeeded", output={"ends": decision.ends})
        done.stops_later = decision.ends == "later_rules"
        return following(done.run.spec, node.index, Settled(node.path, "succeeded"))
    step.input, unknown = judged_on(done.run, node), [arm_id for arm_id, _verdict in decision.unknown]
    output = {"taken": decision.arm_id} | ({"unknown": unknown} if unknown else {})
    _write(done.wave, done.run, step, "succeeded", output=output)
    return decision.next_index


def _write(
    wave: Wave,
    run: RunInHand,
    step: StepInHand,
    state: str,
    *,
    reason: str = "",
    output: Any = None,
    error: str = "",
    attempt: str = "",
) -> None:
    write_step(wave, run, step, state, reason=reason, output=output, error=error, ended=True)
    if attempt:
        wave.attempts.append(NewAttempt(run.event.tenant_id, step.id, step.attempts, None, 0, attempt))


def write_step(
    wave: Wave,
    run: RunInHand,
    step: StepInHand,
    state: str,
    *,
    reason: str = "",
    output: Any = None,
    error: str = "",
    started: bool = True,
    ended: bool = False,
) -> None:
    """Puts a step's new state into the wave: an INSERT for a new step, a guarded UPDATE for one that exists."""
    node = step.node
    if step.row is None:
        wave.new_steps.append(
            NewStep(
                id=step.id,
                tenant_id=run.event.tenant_id,
                run_id=run.id,
                path=node.path,
                kind=node.kind,
                action=node.action,
                state=state,
                reason=reason,
                attempts=step.attempts,
                input=step.input,
                output=output,
                error=error,
                started=started,
                ended=ended,
            )
        )
        return
    wave.steps.append(
        StepChange(
            step_id=step.id,
            was=step.row.state,
            state=state,
            reason=reason,
            attempts=step.attempts,
            effect_state=step.row.effect_state,
            input=step.input,
            output=output,
            error=error,
            started=started,
            ended=ended,
        )
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:500]
