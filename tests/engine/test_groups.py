"""Which events share a transaction: few local steps, of different records, none of which looks at other runs."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from automation.engine.match import Chosen, Judged
from automation.engine.starting import LOCKED_STEPS, TOGETHER, groups


def event(record: int, *rules: tuple[int, str], reason: str = "") -> Judged:
    """An event of a record, and the rules it starts: their number of local steps, and their `again`."""
    chosen = [Chosen(rule(local, again), reason=reason) for local, again in rules]
    return Judged(SimpleNamespace(model="helpdesk.ticket", record=record), chosen)  # type: ignore[arg-type]


def rule(local: int, again: str) -> Any:
    """A rule of so many local steps, or of one outside step."""
    nodes = [SimpleNamespace(local=local > 0, kind="action", off=False)] * max(local, 1)
    return SimpleNamespace(spec=SimpleNamespace(first=0, nodes=nodes, again=again, limit=None))


def sizes(*judged: Judged) -> list[int]:
    return [len(group) for group in groups(list(judged))]


def test_events_of_different_records_share_a_transaction_while_their_local_steps_are_few() -> None:
    assert sizes(*(event(n, (3, "both")) for n in range(9))) == [4, 4, 1]


def test_events_of_one_record_never_share_one_when_they_touch_it() -> None:
    assert sizes(event(1, (1, "both")), event(2, (1, "both")), event(1, (1, "both"))) == [2, 1]


def test_events_of_one_record_share_one_when_they_go_outside_first() -> None:
    assert sizes(*(event(1, (0, "both")) for _ in range(3))) == [3]


def test_a_rule_that_looks_at_other_runs_has_a_transaction_of_its_own() -> None:
    assert sizes(event(1, (1, "both")), event(2, (1, "keep")), event(3, (1, "both"))) == [1, 1, 1]


def test_an_event_with_many_local_steps_is_not_cut() -> None:
    assert sizes(event(1, (1, "both")), event(2, (40, "both"), (40, "both")), event(3, (1, "both"))) == [1, 1, 1]


def test_what_is_suppressed_costs_no_place() -> None:
    assert sizes(*(event(n, (6, "both"), reason="loop_depth") for n in range(4))) == [4]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9), st.sampled_from(["both", "keep", "restart"]))))
def test_groups_keep_the_order_and_every_limit(told: list[tuple[int, int, str]]) -> None:
    judged = [event(record, (local, again)) for record, local, again in told]
    cut = list(groups(judged))
    assert [one for group in cut for one in group] == judged
    for group in cut:
        chosen = [(one.event.record, one.chosen[0].rule.spec) for one in group]
        touching = [record for record, spec in chosen if spec and spec.nodes[0].local]
        assert 0 < len(group) <= TOGETHER
        assert len(set(touching)) == len(touching)
        assert len(group) == 1 or all(spec and spec.again == "both" for _record, spec in chosen)
        steps = sum(len(spec.nodes) for _record, spec in chosen if spec and spec.nodes[0].local)
        assert len(group) == 1 or steps <= LOCKED_STEPS
