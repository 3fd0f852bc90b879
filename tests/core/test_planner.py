"""A run's next step follows from its version and what is settled, and always the same way."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.calendars import Span
from automation.core.conditions import Verdict
from automation.core.planner import (
    Choose,
    Decision,
    Fail,
    Finish,
    HistoryMismatch,
    Perform,
    Settled,
    Skip,
    Sleep,
    Stop,
    decide,
    decide_at,
    following,
)
from automation.core.spec import Arm, Condition, Leaf, Node, RuleSpec, TriggerSpec

YES, NO, UNSURE = Leaf("c_yes", "x", "is"), Leaf("c_no", "x", "is"), Leaf("c_unsure", "x", "is")
VERDICTS = {
    "c_yes": Verdict("true"),
    "c_no": Verdict("false"),
    "c_unsure": Verdict("unknown", "unknown_field", "c_unsure"),
}


def judge(condition: Condition) -> Verdict:
    return VERDICTS[condition.id]


def never(condition: Condition) -> Verdict:
    raise AssertionError("nothing to judge here")


def rule(*nodes: Node) -> RuleSpec:
    trigger = TriggerSpec("manual", "helpdesk.ticket")
    return RuleSpec(trigger, None, "both", nodes, 0 if nodes else None, frozenset())


def node(index: int, kind: Any = "action", after: int | None = None, **more: Any) -> Node:
    return Node(index=index, id=f"s{index}", path=f"s{index}", kind=kind, next=after, **more)


def done(index: int, taken: str | None = None, state: Any = "succeeded") -> Settled:
    return Settled(f"s{index}", state, taken)


def test_steps_follow_one_another_to_the_end() -> None:
    spec = rule(node(0, after=1), node(1))
    assert decide(spec, [], never) == Perform(spec.nodes[0])
    assert decide(spec, [done(0)], never) == Perform(spec.nodes[1])
    assert decide(spec, [done(0), done(1)], never) == Finish()
    assert decide(rule(), [], never) == Finish()


@pytest.mark.case("T19")
def test_a_delay_of_zero_is_a_delay() -> None:
    spec = rule(node(0, "delay", span=Span()))
    assert decide(spec, [], never) == Sleep(spec.nodes[0])


def test_a_failed_step_ends_the_run_or_is_passed_over() -> None:
    stops, goes_on = rule(node(0, after=1), node(1)), rule(node(0, after=1, if_it_fails="continue"), node(1))
    assert decide(stops, [done(0, state="failed")], never) == Fail(stops.nodes[0])
    assert following(stops, 0, done(0, state="failed")) is None
    assert decide(goes_on, [done(0, state="failed")], never) == Perform(goes_on.nodes[1])


def test_a_step_that_is_off_is_skipped_and_a_branch_with_all_that_is_in_it() -> None:
    spec = rule(
        node(0, after=1, off=True),
        node(1, "branch", 3, off=True, arms=(Arm("b_1", YES, 2),)),
        node(2, after=3),
        node(3),
    )
    assert decide(spec, [], never) == Skip(spec.nodes[0])
    assert decide(spec, [done(0, state="skipped")], never) == Skip(spec.nodes[1])
    assert decide(spec, [done(0, state="skipped"), done(1, state="skipped")], never) == Perform(spec.nodes[3])


def test_a_stop_ends_the_run_and_says_what_else_it_ends() -> None:
    spec = rule(node(0, "stop", 1, ends="later_rules"), node(1))
    assert decide(spec, [], never) == Stop(spec.nodes[0], "later_rules")
    assert decide(spec, [done(0)], never) == Finish()
    assert decide(spec, [done(0, state="skipped")], never) == Perform(spec.nodes[1])


def branching() -> RuleSpec:
    arms = (Arm("b_1", UNSURE, 1), Arm("b_2", NO, 1), Arm("b_3", YES, 2), Arm("b_4", YES, None))
    return rule(
        node(0, "branch", 4, arms=arms, otherwise=3), node(1, after=4), node(2, after=4), node(3, after=4), node(4)
    )


def test_a_branch_takes_the_first_true_arm_and_reports_those_it_could_not_judge() -> None:
    spec = branching()
    assert decide(spec, [], judge) == Choose(spec.nodes[0], "b_3", 2, (("b_1", VERDICTS["c_unsure"]),))
    assert decide(spec, [done(0, "b_3")], never) == Perform(spec.nodes[2])
    assert decide(spec, [done(0, "b_3"), done(2)], never) == Perform(spec.nodes[4])


def test_an_empty_arm_and_a_missing_otherwise_lead_to_what_follows_the_branch() -> None:
    assert following(branching(), 0, done(0, "b_4")) == 4
    assert following(branching(), 0, done(0, "otherwise")) == 3
    assert following(branching(), 0, done(0, None)) == 3
    spec = rule(node(0, "branch", 1, arms=(Arm("b_1", NO, None),)), node(1))
    assert decide(spec, [], judge) == Choose(spec.nodes[0], None, 1)
    assert decide(spec, [done(0, "otherwise")], never) == Perform(spec.nodes[1])


@pytest.mark.parametrize("history", [[done(1)], [done(0), done(0)], [done(0), done(1), done(2)]])
def test_a_history_that_the_version_cannot_have_made_is_refused(history: list[Settled]) -> None:
    with pytest.raises(HistoryMismatch, match=r"s0|s1|s2"):
        decide(rule(node(0, after=1), node(1)), history, never)


def test_an_arm_that_does_not_exist_is_refused() -> None:
    with pytest.raises(HistoryMismatch, match="b_9"):
        following(branching(), 0, done(0, "b_9"))


@st.composite
def rules(draw: st.DrawFn) -> RuleSpec:
    """Rules as the compiler lays them out, from nested lists."""
    nodes: dict[int, Node] = {}

    def count(tree: list[Any]) -> int:
        return sum(1 + sum(count(part) for part in item[1]) for item in tree)

    def lay(tree: list[Any], first: int, after: int | None) -> int | None:
        index = first
        for place, (kind, parts) in enumerate(tree):
            inner = sum(count(part) for part in parts)
            following_index = index + 1 + inner if place + 1 < len(tree) else after
            starts, at = [], index + 1
            for part in parts:
                starts.append(lay(part, at, following_index))
                at += count(part)
            arms = tuple(
                Arm(f"b_{number}", draw(st.sampled_from([YES, NO, UNSURE])), start)
                for number, start in enumerate(starts[1:])
            )
            nodes[index] = node(
                index,
                kind,
                following_index,
                arms=arms,
                otherwise=starts[0] if starts else None,
                off=draw(st.integers(0, 5)) == 0,
                if_it_fails=draw(st.sampled_from(["stop", "continue"])),
            )
            index += 1 + inner
        return first if tree else None

    plain = st.tuples(st.sampled_from(["action", "delay", "stop"]), st.just([]))
    tree = draw(
        st.recursive(
            st.lists(plain, max_size=3),
            lambda inner: st.lists(
                plain | st.tuples(st.just("branch"), st.lists(inner, min_size=1, max_size=3)), max_size=3
            ),
            max_leaves=8,
        )
    )
    first = lay(tree, 0, None)
    return RuleSpec(
        TriggerSpec("manual", "m"), None, "both", tuple(nodes[at] for at in sorted(nodes)), first, frozenset()
    )


def outcome(decision: Decision, state: str) -> Settled:
    if isinstance(decision, Choose):
        return Settled(decision.node.path, "succeeded", decision.arm_id or "otherwise")
    if isinstance(decision, Skip):
        return Settled(decision.node.path, "skipped")
    assert isinstance(decision, Perform | Sleep | Stop)
    return Settled(decision.node.path, state if isinstance(decision, Perform) else "succeeded")


def walk(spec: RuleSpec, states: Iterator[str]) -> Iterator[tuple[list[Settled], int | None, Decision]]:
    """Each decision of a run with the history before it and the place that following it step by step leads to."""
    history: list[Settled] = []
    index = spec.first
    while True:
        decision = decide(spec, history, judge)
        yield list(history), index, decision
        if isinstance(decision, Finish | Fail):
            return
        settled = outcome(decision, next(states))
        index = following(spec, decision.node.index, settled)
        history.append(settled)


@given(rules(), st.lists(st.sampled_from(["succeeded", "failed", "skipped"]), min_size=40, max_size=40))
def test_deciding_from_the_whole_history_and_step_by_step_agree(spec: RuleSpec, states: list[str]) -> None:
    seen: list[int] = []
    for _history, index, decision in walk(spec, iter(states)):
        if not isinstance(decision, Fail):
            assert decision == decide_at(spec, index, judge)
        if not isinstance(decision, Finish | Fail):
            seen.append(decision.node.index)
    assert seen == sorted(set(seen)), "a run only goes forward, and through each step once"


@given(rules(), st.lists(st.sampled_from(["succeeded", "failed", "skipped"]), min_size=40, max_size=40))
def test_planning_a_recorded_run_again_reaches_the_same_decisions(spec: RuleSpec, states: list[str]) -> None:
    recorded = list(walk(spec, iter(states)))
    assert [decide(spec, history, judge) for history, _index, _decision in recorded] == [
        decision for _h, _i, decision in recorded
    ]
