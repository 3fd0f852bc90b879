"""Which steps a run would take if every one of them succeeded, as far as the facts tell."""

from collections.abc import Iterator

from automation.core.decisions import OTHERWISE, Choose, Fail, Finish, Settled, Skip
from automation.core.planner import JudgeCondition, decide_at, following
from automation.core.spec import Node, RuleSpec


def foresee(spec: RuleSpec, judge: JudgeCondition) -> Iterator[Node]:
    """The nodes in the order in which a run would come by them; arms are judged by `judge`, on what is known now.

    Nodes that are switched off are left out. After a wait the facts may be others than those that `judge` knows.
    """
    index = spec.first
    while index is not None:
        decision = decide_at(spec, index, judge)
        if isinstance(decision, Finish | Fail):
            return
        node = decision.node
        if not isinstance(decision, Skip):
            yield node
        taken = (decision.arm_id or OTHERWISE) if isinstance(decision, Choose) else None
        state = "skipped" if isinstance(decision, Skip) else "succeeded"
        index = following(spec, index, Settled(node.path, state, taken))  # type: ignore[arg-type]  # one of its words
