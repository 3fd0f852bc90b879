"""Causes, keys, retries and states: the small rules that loops, duplicates and outages are held by."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core import states
from automation.core.backoff import next_try
from automation.core.causes import ROOT, Cause, child, may_continue
from automation.core.keys import idempotency_key
from automation.core.spec import Retry

TICKET, OTHER = "helpdesk.ticket:1", "helpdesk.ticket:2"


def after(cause: Cause, rule_id: int, record: str = TICKET, event_id: int = 10) -> Cause:
    return child(
        cause, event_id=event_id, rule_id=rule_id, run_id=rule_id * 100, step_id=rule_id * 1000, record_key=record
    )


@pytest.mark.case("L01")
def test_a_rule_does_not_run_again_on_the_record_that_it_changed() -> None:
    assert may_continue(after(ROOT, 1), 1, TICKET, max_depth=5) == "loop_same_rule"


@pytest.mark.case("L04")
def test_other_rules_and_other_records_go_on_and_a_new_root_is_never_held_up() -> None:
    assert may_continue(after(ROOT, 1), 2, TICKET, max_depth=5) is None
    assert may_continue(after(ROOT, 1), 1, OTHER, max_depth=5) is None
    assert may_continue(ROOT, 1, TICKET, max_depth=5) is None


@pytest.mark.case("L10")
def test_a_chain_over_ever_new_records_ends_at_the_depth_allowed() -> None:
    cause = ROOT
    for number in range(5):
        assert may_continue(cause, 1, f"crm.lead:{number}", max_depth=5) is None
        cause = after(cause, 1, f"crm.lead:{number}", event_id=number + 1)
    assert cause.depth == 5
    assert may_continue(cause, 1, "crm.lead:99", max_depth=5) == "loop_depth"


@pytest.mark.case("L02")
def test_a_cause_carries_its_whole_chain_with_root_and_parent() -> None:
    first = after(ROOT, 1, event_id=10)
    second = after(first, 2, event_id=11)
    assert (second.root_event_id, second.parent_event_id, second.depth) == (10, 11, 2)
    assert second.path == ((1, TICKET), (2, TICKET))
    assert (second.rule_id, second.run_id, second.step_id) == (2, 200, 2000)


PARTS = {"tenant_id": 1, "record_key": TICKET, "rule_id": 2, "event_id": 3, "path": "both[1]/page", "epoch": 0}


def test_the_same_step_has_the_same_key_in_every_process() -> None:
    program = f"from automation.core.keys import idempotency_key as k; print(k(**{PARTS!r}))"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == idempotency_key(**PARTS)
    assert len(idempotency_key(**PARTS)) == 64


@given(st.sampled_from(sorted(PARTS)))
def test_every_part_of_a_step_changes_its_key(part: str) -> None:
    changed = PARTS | {part: PARTS[part] + "x" if isinstance(PARTS[part], str) else PARTS[part] + 1}
    assert idempotency_key(**changed) != idempotency_key(**PARTS)


def test_parts_do_not_run_into_one_another() -> None:
    one, other = PARTS | {"rule_id": 11, "event_id": 2}, PARTS | {"rule_id": 1, "event_id": 12}
    assert idempotency_key(**one) != idempotency_key(**other)


class Always:
    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def test_delays_grow_to_their_cap_until_the_attempts_are_used_up() -> None:
    retry = Retry(max_attempts=6, base_delay=1, factor=3, max_delay=20, jitter=False)
    assert [next_try(retry, failures=n, rng=Always(0)) for n in range(1, 7)] == [1, 3, 9, 20, 20, None]


def test_jitter_takes_a_fraction_of_the_delay() -> None:
    retry = Retry(base_delay=8, factor=2, jitter=True)
    assert next_try(retry, failures=2, rng=Always(0.25)) == 4


@given(st.integers(1, 19), st.integers(0, 2**32), st.floats(1, 10), st.floats(0, 1e9))
def test_a_delay_is_never_negative_and_never_beyond_the_cap(
    failures: int, seed: int, factor: float, base: float
) -> None:
    retry = Retry(max_attempts=20, base_delay=base, factor=factor, max_delay=60)
    delay = next_try(retry, failures=failures, rng=random.Random(seed))
    assert delay is not None
    assert 0 <= delay <= 60


def test_what_an_endpoint_asks_for_is_honoured_within_reason() -> None:
    retry = Retry(jitter=False)
    assert next_try(retry, failures=1, rng=Always(0), retry_after=30) == 30
    assert next_try(retry, failures=5, rng=Always(0), retry_after=30) == 81
    assert next_try(retry, failures=1, rng=Always(0), retry_after=1e12) == 7 * 86_400
    for nonsense in (-5.0, float("nan"), float("inf")):
        assert next_try(retry, failures=1, rng=Always(0), retry_after=nonsense) == 1
    assert next_try(replace(retry, max_attempts=1), failures=1, rng=Always(0), retry_after=30) is None


def test_nothing_leaves_a_terminal_state_but_by_a_persons_verb() -> None:
    assert {"succeeded", "failed", "cancelled", "compensated", "suppressed"} == states.TERMINAL_RUN
    for moves in (states.RUN_MOVES, states.STEP_MOVES):
        assert set().union(*moves.values()) <= moves.keys(), "a move to a state that doesn't exist"
    for state in states.TERMINAL_STEP - {"succeeded"}:
        assert not states.STEP_MOVES[state]
    assert states.STEP_MOVES["succeeded"] == {"compensated"}


def test_the_sources_of_a_move_are_those_that_allow_it() -> None:
    assert set(states.sources_of(states.STEP_MOVES, "compensated")) == {"succeeded"}
    assert states.may_move(states.RUN_MOVES, "running", "succeeded")
    assert not states.may_move(states.RUN_MOVES, "succeeded", "running")
    assert not states.may_move(states.RUN_MOVES, "nonsense", "running")
