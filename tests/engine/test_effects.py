"""Attempts, retries, keys and dead letters of outside steps."""

import random
from datetime import timedelta
from itertools import pairwise

import pytest

from automation.catalog.action import Outcome
from automation.core.backoff import next_try
from automation.core.spec import Retry
from automation.engine import ruleset
from automation.engine.effects import EffectCall
from automation.engine.operate import dead_letters
from automation.models import Notice
from tests.engine.world import World, leaf, step, when

ENDLESS = "{% for a in (1..1000) %}{% for b in (1..1000) %}{{ ticket.subject }}{% endfor %}{% endfor %}"
DAY = {"id": "d", "kind": "delay", "for": "P1D"}
URGENT = leaf("priority", "changed_to", "urgent")


def hook(id_: str = "call", **more: object) -> dict[str, object]:
    """A webhook step."""
    return step(id_, "call_webhook", connection="hook") | more


def failing(times: int, outcome: Outcome | None = None):
    """Answers so many times with a failure, then with success."""
    left = [times]

    def answer(call: EffectCall) -> Outcome:
        left[0] -= 1
        return (
            (outcome or Outcome.retry("The receiver answered 503.")) if left[0] >= 0 else Outcome.done({"status": 200})
        )

    return answer


@pytest.mark.case("R05")
def test_a_failed_attempt_is_tried_again_under_the_same_key(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", step("t", "add_tags", tags=["a"]), hook(), condition=URGENT)
    world.answer = failing(4)
    ticket = world.ticket()
    world.change(ticket, priority="urgent")
    run = world.runs(rule)[0]
    assert run.state == "succeeded"
    assert world.attempts(run, "call") == ["failed"] * 4 + ["ok"]
    assert world.attempts(run, "t") == ["ok"]
    assert len({call.door.key for call in world.calls()}) == 1
    assert [call.door.attempt for call in world.calls()] == [1, 2, 3, 4, 5]


def test_retry_after_is_a_lower_bound(world: World) -> None:
    world.connection()
    world.rule("Hook", hook())
    world.answer = failing(1, Outcome.retry("Busy.", retry_after=7.0))
    ticket = world.ticket()
    started = world.runner.timers.clock
    world.change(ticket, subject="Go")
    assert world.runner.timers.clock - started >= timedelta(seconds=7)


def test_a_step_that_uses_up_its_attempts_waits_for_a_person_with_its_whole_context(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", hook(retry={"max_attempts": 3, "base_delay": "PT1S", "factor": 2.0}), hook("after"))
    world.answer = failing(99)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    run = world.runs(rule)[0]
    assert (run.state, run.reason) == ("failed", "exhausted")
    assert world.attempts(run, "call") == ["failed"] * 3
    assert world.steps(run)["call"].state == "dead"
    (letter,) = world.dead_letters()
    assert letter.reason == "exhausted"
    assert letter.snapshot["event"]["facts"]["after"] == {"subject": "Go"}
    assert letter.snapshot["step"]["path"] == "call"
    with world.acting():
        notice = Notice.objects.get()
        assert notice.recipients == [world.ana.user.email]
        assert "Hook" in notice.title


def test_one_notice_an_hour_counts_further_cases(world: World) -> None:
    world.connection()
    world.rule("Hook", hook(retry={"max_attempts": 1}))
    world.answer = lambda call: Outcome.done() if call.claimed.kind == "deliver" else Outcome.retry("Down.")
    for number in range(3):
        world.change(world.ticket(), subject=f"Go {number}")
    with world.acting():
        assert Notice.objects.get().cases == 3


def test_a_permanent_answer_is_not_tried_again(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", hook())
    world.answer = lambda call: Outcome.rejected("The receiver answered 404.")
    world.change(world.ticket(), subject="Go")
    run = world.runs(rule)[0]
    assert (run.state, run.reason) == ("failed", "rejected")
    assert world.attempts(run, "call") == ["failed"]


def test_a_rule_may_go_on_after_a_step_that_failed(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", hook(if_it_fails="continue"), step("t", "add_tags", tags=["after"]))
    world.answer = lambda call: Outcome.rejected("No.")
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    run = world.runs(rule)[0]
    assert run.state == "succeeded"
    assert world.steps(run)["call"].state == "failed"
    assert world.fresh(ticket).tags == ["after"]
    assert world.dead_letters() == []


@pytest.mark.case("R05")
def test_a_dead_step_is_retried_by_a_person_and_goes_on_where_it_stood(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", step("t", "add_note", text="once"), hook(retry={"max_attempts": 2}), hook("last"))
    world.answer = failing(2)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    (letter,) = world.dead_letters()
    with world.acting():
        dead_letters.retry(letter.pk)
    world.adopt_timers()
    world.run()
    run = world.runs(rule)[0]
    assert run.state == "succeeded"
    assert world.attempts(run, "t") == ["ok"]
    assert world.attempts(run, "call") == ["failed", "failed", "ok"]
    keys = [call.door.key for call in world.calls() if call.step_id == world.steps(run)["call"].pk]
    assert len(set(keys)) == 1
    assert world.dead_letters() == []


@pytest.mark.case("D14")
def test_an_uncertain_message_is_not_sent_twice_but_waits_for_a_person(world: World) -> None:
    world.customer()
    rule = world.rule("Mail", step("m", "send_email", to="customer", subject="Hi", text="Hello"))
    world.answer = lambda call: Outcome.uncertain("The connection was closed after the message.")
    ticket = world.ticket(customer=world.customer())
    world.change(ticket, subject="Go")
    run = world.runs(rule)[0]
    assert (run.state, run.reason) == ("waiting", "delivery_unknown")
    assert world.steps(run)["m"].effect_state == "uncertain"
    assert [letter.reason for letter in world.dead_letters()] == ["delivery_unknown"]
    assert len([call for call in world.calls() if call.step_id]) == 1


def test_a_timeout_of_an_idempotent_step_is_retried_and_ends_as_deadline(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", hook(retry={"max_attempts": 2}))
    world.answer = lambda call: Outcome.timeout("No answer.")
    world.change(world.ticket(), subject="Go")
    run = world.runs(rule)[0]
    assert (run.state, run.reason) == ("failed", "deadline")
    assert world.attempts(run, "call") == ["timeout", "timeout"]


@pytest.mark.case("S10")
def test_a_template_that_breaks_at_run_time_fails_its_step_alone(world: World) -> None:
    world.rule("Bad", step("n", "add_note", text=ENDLESS))
    other = world.rule("Good", step("t", "add_tags", tags=["fine"]))
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert "failed template_error" in world.states()
    assert world.states(other)[0] == "succeeded"
    assert world.fresh(ticket).tags == ["fine"]


@pytest.mark.case("X04")
def test_a_customer_who_opted_out_meanwhile_gets_no_mail(world: World) -> None:
    rule = world.rule(
        "Later",
        DAY,
        step("m", "send_email", to="customer", subject="Hi", text="x"),
    )
    customer = world.customer()
    ticket = world.ticket(customer=customer)
    world.change(ticket, subject="Go", run=False)
    world.pass_time(timedelta(hours=1))
    world.change(customer, run=False, email_opt_out=True)
    world.run()
    run = world.runs(rule)[0]
    assert run.state == "succeeded"
    assert (world.steps(run)["m"].state, world.steps(run)["m"].reason) == ("skipped", "opted_out")
    assert [call for call in world.calls() if call.step_id] == []


@pytest.mark.case("X07")
def test_a_retry_after_an_opt_out_sends_nothing(world: World) -> None:
    world.answer = failing(1)
    rule = world.rule("Offer", step("m", "send_email", to="customer", subject="Hi", text="x"))
    customer = world.customer()
    world.change(world.ticket(customer=customer), subject="Go", run=False)
    world.run_until_held()
    assert len(world.calls()) == 1
    world.change(customer, run=False, email_opt_out=True)
    world.run()
    run = world.runs(rule)[0]
    assert (world.steps(run)["m"].state, world.steps(run)["m"].reason) == ("skipped", "opted_out")
    assert len(world.calls()) == 1


@pytest.mark.case("X07")
def test_of_an_opt_out_itself_only_a_mail_tells_that_is_marked_as_needed(world: World) -> None:
    mail = {"to": "customer", "subject": "You get no more offers", "text": "x"}
    rule = world.rule(
        "Confirm",
        step("offer", "send_email", **mail),
        step("must", "send_email", **mail, transactional=True),
        trigger=when(model="helpdesk.customer", fields=["email_opt_out"]),
        condition=leaf("email_opt_out", "is", True),
    )
    customer = world.customer()
    world.run()
    world.commit()
    world.change(customer, email_opt_out=True)
    steps = world.steps(world.runs(rule)[0])
    assert [(steps[path].state, steps[path].reason) for path in ("offer", "must")] == [
        ("skipped", "opted_out"),
        ("succeeded", ""),
    ]
    assert len(world.calls()) == 1


@pytest.mark.case("X04")
def test_a_record_that_is_deleted_during_a_delay_ends_its_steps_without_a_retry(world: World) -> None:
    rule = world.rule(
        "Later",
        DAY,
        step("t", "add_tags", tags=["late"]),
        step("m", "send_email", to="customer", subject="Hi", text="x"),
    )
    ticket = world.ticket(customer=world.customer())
    world.change(ticket, subject="Go", run=False)
    world.pass_time(timedelta(hours=1))
    with world.acting():
        ticket.delete()
    world.run()
    run = world.runs(rule)[0]
    steps = world.steps(run)
    assert run.state == "succeeded"
    assert [(steps[path].state, steps[path].reason) for path in ("t", "m")] == [("skipped", "record_gone")] * 2


@pytest.mark.fault(36)
def test_chosen_delays_lie_in_their_interval_and_are_spread_over_it() -> None:
    retry, rng = Retry(max_attempts=10, base_delay=1.0, factor=3.0, max_delay=60.0), random.Random(4)
    for failures in range(1, 6):
        cap = min(60.0, 3.0 ** (failures - 1))
        waits = [next_try(retry, failures=failures, rng=rng) or 0.0 for _ in range(1000)]
        assert all(0 <= wait <= cap for wait in waits)
        edges = [cap * tenth / 10 for tenth in range(11)]
        shares = [sum(low <= wait < high for wait in waits) / 1000 for low, high in pairwise(edges)]
        assert max(shares) <= 0.15


def test_a_secret_that_can_not_be_read_any_more_sends_nothing_unsigned(world: World) -> None:
    connection = world.connection()
    rule = world.rule("Hook", hook())
    with world.acting():
        connection.secret_encrypted = b"of a key that is gone"
        connection.save()
    ruleset.forget()
    world.change(world.ticket(), subject="Go")
    run = world.runs(rule)[0]
    assert (run.state, run.reason) == ("failed", "broken_reference")
    assert "enter it again" in world.steps(run)["call"].error
    assert [call for call in world.calls() if call.step_id] == []
