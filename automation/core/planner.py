"""What a run does next, decided from its version and the steps that are settled."""

from collections.abc import Callable, Iterable

from automation.core.conditions import TRUE, Verdict
from automation.core.decisions import OTHERWISE, Choose, Decision, Fail, Finish, Perform, Settled, Skip, Sleep, Stop
from automation.core.spec import Arm, Condition, Node, RuleSpec

__all__ = [
    "OTHERWISE",
    "Choose",
    "Decision",
    "Fail",
    "Finish",
    "HistoryMismatch",
    "Perform",
    "Settled",
    "Skip",
    "Sleep",
    "Stop",
    "decide",
    "decide_at",
    "fails_run",
    "following",
]

JudgeCondition = Callable[[Condition], Verdict]


class HistoryMismatch(ValueError):
    """A recorded history that the version can't have produced; the text names the step."""


def decide(spec: RuleSpec, history: Iterable[Settled], judge: JudgeCondition) -> Decision:
    """What comes after the settled steps, given in their order. One look at each; `judge` is asked for arms only.

    Pure: the same version, history and verdicts always give the same decision. HistoryMismatch when a settled step
    isn't the one that the version has at that place.
    """
    index = spec.first
    for settled in history:
        node = None if index is None else spec.nodes[index]
        if node is None or node.path != settled.path:
            expected = "the end" if node is None else node.path
            raise HistoryMismatch(f"the history has {settled.path!r} where the version has {expected!r}")
        if fails_run(node, settled):
            return Fail(node)
        index = following(spec, node.index, settled)
    return decide_at(spec, index, judge)


def decide_at(spec: RuleSpec, index: int | None, judge: JudgeCondition) -> Decision:
    """What to do at a node, or at the end (None): the last part of `decide`, for who knows the place already."""
    if index is None:
        return Finish()
    node = spec.nodes[index]
    if node.off:
        return Skip(node)
    if node.kind == "branch":
        return _choose(node, judge)
    if node.kind == "delay":
        return Sleep(node)
    return Stop(node, node.ends) if node.kind == "stop" else Perform(node)


def following(spec: RuleSpec, node_index: int, settled: Settled) -> int | None:
    """The index of the node after a settled one; None when the run ends there, well or (see `fails_run`) badly."""
    node = spec.nodes[node_index]
    if fails_run(node, settled):
        return None
    if settled.state != "succeeded":
        return node.next
    if node.kind == "stop":
        return None
    return _exit(node, settled.taken) if node.kind == "branch" else node.next


def fails_run(node: Node, settled: Settled) -> bool:
    """Whether a settled step takes its run down with it."""
    return settled.state == "failed" and node.if_it_fails == "stop"


def _choose(node: Node, judge: JudgeCondition) -> Choose:
    unknown: list[tuple[str, Verdict]] = []
    for arm in node.arms:
        verdict = TRUE if arm.condition is None else judge(arm.condition)
        if verdict.is_true:
            return Choose(node, arm.id, _entry(node, arm), tuple(unknown))
        if verdict.value == "unknown":
            unknown.append((arm.id, verdict))
    return Choose(node, None, _exit(node, OTHERWISE), tuple(unknown))


def _exit(node: Node, taken: str | None) -> int | None:
    if taken is None or taken == OTHERWISE:
        return node.next if node.otherwise is None else node.otherwise
    for arm in node.arms:
        if arm.id == taken:
            return _entry(node, arm)
    raise HistoryMismatch(f"the history went through {taken!r} at {node.path!r}, which has no such arm")


def _entry(node: Node, arm: Arm) -> int | None:
    return node.next if arm.first is None else arm.first
