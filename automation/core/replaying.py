"""Judges and plans a recorded run again, and says which decisions have moved; it never acts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from automation.core.calendars import Span, add
from automation.core.conditions import TRUE, Verdict, compile_condition
from automation.core.decisions import OTHERWISE, Choose, Decision, Finish, Settled, Skip, Sleep
from automation.core.histories import History, RecordedStep, moment_in, values_in
from automation.core.moments import Moment
from automation.core.planner import decide_at, fails_run, following
from automation.core.spec import Condition, Node, RuleSpec

UNJUDGED = frozenset({"unknown_field", "broken_reference"})  # why a run is suppressed whose condition isn't known
SETTLED = frozenset({"succeeded", "failed", "skipped"})
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Moved:
    """A decision that is another one now: where ("condition", a step's path, "end"), what was recorded, what is now."""

    where: str
    recorded: str
    planned: str


def replan(spec: RuleSpec, history: History) -> list[Moved]:
    """The decisions that differ, in the order of the run, up to the first after which the run would be another.

    A wait's end is looked at where the history says when the wait began, an arm after a wait where it has the values
    that were read.
    """
    moved = list(_verdict(spec, history))
    if moved or history.state == "suppressed":
        return moved
    return list(_walk(spec, history))


def _verdict(spec: RuleSpec, history: History) -> Iterator[Moved]:
    if history.is_replay:
        return  # a person wanted it, whatever the condition says
    recorded = "unknown" if history.state == "suppressed" and history.reason in UNJUDGED else "true"
    found = compile_condition(spec.condition)(history.facts, Moment(now=history.at, zone=history.zone))
    if found.value != recorded:
        yield Moved("condition", recorded, f"{found.value} {found.reason}".strip())


def _walk(spec: RuleSpec, history: History) -> Iterator[Moved]:
    index, slept, seen = spec.first, False, set[str]()
    while index is not None:
        node = spec.nodes[index]
        step = history.steps.get(node.path)
        if step is None:
            if history.state == "succeeded":
                yield Moved(node.path, NOTHING, _shown(node.kind, node.action))
            break
        seen.add(node.path)
        found = list(_step(spec, history, node, step, slept=slept))
        yield from found
        if found or step.state not in SETTLED:
            break
        slept = slept or (node.kind == "delay" and step.state == "succeeded")
        settled = _settled(step)
        if fails_run(node, settled):
            break
        index = following(spec, node.index, settled)
    else:
        yield from _end(history)
    yield from _left_over(history, seen)


def _left_over(history: History, seen: set[str]) -> Iterator[Moved]:
    """Steps that were done and that the plan doesn't come by; after a decision that moved there are such, of course."""
    for path, step in history.steps.items():
        if path not in seen:
            yield Moved(path, _shown(step.kind, step.action), NOTHING)


def _end(history: History) -> Iterator[Moved]:
    if history.state not in ("succeeded", "cancelled", "compensated"):
        yield Moved("end", history.state, "succeeded")


def _step(spec: RuleSpec, history: History, node: Node, step: RecordedStep, *, slept: bool) -> Iterator[Moved]:
    if (node.kind, node.action) != (step.kind, step.action):
        yield Moved(node.path, _shown(step.kind, step.action), _shown(node.kind, node.action))
        return
    facts, moment, known = _as_judged(history, step, slept=slept)
    decision = decide_at(spec, node.index, _judge(facts, moment))
    yield from _decision(decision, history, node, step, known=known)
    if step.key and step.key != history.key(step):
        yield Moved(node.path, f"key {step.key[:12]}…", f"key {history.key(step)[:12]}…")


def _decision(decision: Decision, history: History, node: Node, step: RecordedStep, *, known: bool) -> Iterator[Moved]:
    if isinstance(decision, Skip):
        if step.state not in ("skipped", "cancelled"):
            yield Moved(node.path, step.state, "skipped")
    elif isinstance(decision, Choose):
        if known and step.state == "succeeded" and decision.arm_id != step.taken:
            yield Moved(node.path, f"arm {step.taken or OTHERWISE}", f"arm {decision.arm_id or OTHERWISE}")
    elif isinstance(decision, Sleep):
        yield from _wait(history, node, step)
    elif isinstance(decision, Finish):
        yield Moved(node.path, _shown(step.kind, step.action), "the end")


def _wait(history: History, node: Node, step: RecordedStep) -> Iterator[Moved]:
    began, until = moment_in(step.given, "from"), moment_in(step.given, "until")
    if began is None or until is None:
        return
    planned = add(began, node.span or Span(0, 0, 0), history.zone)
    if "scale" in step.given:  # the demo's workers shorten waits
        planned = began + (planned - began) * step.given["scale"]
    if planned != until:
        yield Moved(node.path, f"until {until.isoformat()}", f"until {planned.isoformat()}")


def _as_judged(history: History, step: RecordedStep, *, slept: bool) -> tuple[dict[str, Any], Moment, bool]:
    """What a branch was judged on: facts, moment, and whether that is known."""
    now = moment_in(step.given, "now") if step.kind == "branch" else None
    read = values_in(step.given) if now is not None else None
    snapshot = {**(history.facts.get("snapshot") or {}), **(read or {})}
    moment = Moment(now=now or history.at, zone=history.zone)
    return {**history.facts, "snapshot": snapshot}, moment, not slept or read is not None


def _judge(facts: dict[str, Any], moment: Moment) -> Any:
    def judge(condition: Condition | None) -> Verdict:
        return TRUE if condition is None else compile_condition(condition)(facts, moment)

    return judge


def _settled(step: RecordedStep) -> Settled:
    taken = (step.taken or OTHERWISE) if step.kind == "branch" else None
    return Settled(step.path, step.state, taken)  # type: ignore[arg-type]  # one of its words


def _shown(kind: str, action: str) -> str:
    return f"{kind} {action}".strip()
