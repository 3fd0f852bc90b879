"""An erased person is in no event, trace, snapshot, dead letter or notice; what was decided can still be followed."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from automation.catalog.action import Outcome
from automation.engine.explain import explain
from automation.engine.operate import Refused
from automation.engine.operate.dead_letters import retry
from automation.engine.operate.waking import wake
from automation.engine.trace import trace
from automation.extend import Erased, erase
from automation.models import Event, Notice, StepExecution, Timer
from automation.store import clock, erasing
from northwind.helpdesk.models import Customer, Ticket
from tenants.models import AuditEntry
from tests.engine.world import World, leaf, make_world, set_field, step, when

pytestmark = pytest.mark.django_db
NAME, MAIL, PHONE = "Gold Person", "gold@person.example", "+49 170 1234567"


@pytest.fixture
def world(db: None) -> World:
    world = make_world()
    world.connection()
    return world


def mail(id_: str = "write") -> dict[str, object]:
    return step(id_, "send_email", to="customer", subject="{{ ticket.subject }}", text="To {{ ticket.customer.name }}")


def everything(*, but: tuple[str, ...] = ()) -> str:
    """All that the engine has stored, as one text."""
    found = []
    with connection.cursor() as cursor:
        for table in ("event", "run", "stepexecution", "attempt", "deadletter", "notice"):
            if table not in but:
                cursor.execute(f"SELECT COALESCE(json_agg(x)::text, '') FROM automation_{table} x")
                found.append(cursor.fetchone()[0])
    return " ".join(found).lower()


def person(world: World) -> Customer:
    customer = world.customer(name=NAME, email="old@person.example", phone=PHONE)
    world.run()
    world.change(customer, email=MAIL)
    return customer


def go(world: World, customer: Customer, **options: object) -> Erased:
    with world.acting():
        return erase("helpdesk.customer", customer.pk, **options)  # type: ignore[arg-type]


@pytest.mark.case("P05")
@pytest.mark.case("X04")
def test_nothing_is_left_of_the_person_and_the_waiting_run_has_no_snapshot(world: World):
    rule = world.rule("Remind", {"id": "wait", "kind": "delay", "for": "P1D"}, mail(), trigger=when("created"))
    done = world.rule(
        "Tell the desk",
        step("tell", "call_webhook", connection="hook", body='{"who": "{{ ticket.customer.name }}"}'),
        trigger=when("created"),
    )
    customer = person(world)
    with world.acting():
        ticket = Ticket(tenant=world.tenant, subject="My left leg", customer=customer)
        ticket.save()
        world.commit()
    world.run_until_held()
    assert world.states(rule) == ["waiting"]
    assert world.states(done) == ["succeeded"]
    assert MAIL in everything()

    found = go(world, customer)
    text = everything()
    for word in (NAME, MAIL, "old@person.example", PHONE, "left leg"):
        assert word.lower() not in text
    assert found.live_runs == 1
    assert found.changed["events"] >= 3
    event = world.runs(rule)[0].event
    assert event.facts["snapshot"]["status"] == "new"
    assert event.facts["snapshot"]["customer"] == customer.pk
    with world.acting():
        assert trace(world.runs(done)[0].pk).state == "succeeded"
        assert AuditEntry.objects.get(verb="erase").target == f"helpdesk.customer:{customer.pk}"

    # The host anonymises its record: the mail has nobody to go to, and the run ends all the same.
    world.change(customer, run=False, name="Erased", email="", phone="")
    world.pass_time(timedelta(days=2))
    assert world.states(rule) == ["succeeded"]
    assert world.steps(world.runs(rule)[0])["write"].state == "skipped"
    assert go(world, customer).changed == {"events": 1, "steps": 1}  # what happened since
    assert go(world, customer).changed == {}


def test_other_records_keep_their_texts_but_for_the_persons_name(world: World):
    world.rule("Note", step("note", "add_note", text="{{ ticket.subject }}"), trigger=when("updated"))
    customer = person(world)
    other = world.ticket(subject="Nobody in particular")
    event = world.change(other, subject=f"{NAME} called about {MAIL}, again")
    untouched = world.change(other, subject="All is well")
    facts = dict(untouched.facts)
    go(world, customer)
    event.refresh_from_db()
    assert event.facts["after"]["subject"] == "[erased] called about [erased], again"
    assert event.details_removed_at is None
    untouched.refresh_from_db()
    assert untouched.facts == {
        **facts,
        "before": {**facts["before"], "subject": "[erased] called about [erased], again"},
        "erased": ["before:subject"],
    }
    assert StepExecution._base_manager.filter(input__text="All is well").exists()


def test_dead_letters_and_notices_lose_the_words_too(world: World):
    world.answer = lambda call: Outcome.rejected(f"{MAIL} is no mailbox")
    rule = world.rule("Write", mail(), trigger=when("created"))
    customer = person(world)
    ticket = world.ticket(subject="Help", customer=customer)
    letter = world.dead_letters()[0]
    assert MAIL in json.dumps(letter.snapshot) + letter.error
    with world.acting():
        assert Notice.objects.filter(text__contains=MAIL).exists()
    go(world, customer)
    assert MAIL not in everything()
    letter.refresh_from_db()
    assert letter.resolved_at is None
    assert letter.snapshot["event"]["id"] == world.runs(rule)[0].event_id
    assert ticket.pk


def test_a_branch_keeps_what_it_decided(world: World):
    arm = {"id": "gold", "if": leaf("customer.plan", "is", "gold"), "steps": [set_field("up", "priority", "urgent")]}
    rule = world.rule(
        "Gold", {"id": "which", "kind": "branch", "arms": [arm], "otherwise": []}, trigger=when("created")
    )
    customer = person(world)
    world.change(customer, plan="gold")
    world.ticket(subject="Help", customer=customer)
    before = world.steps(world.runs(rule)[0])["which"].output
    go(world, customer)
    assert world.steps(world.runs(rule)[0])["which"].output == before


def test_a_dry_run_counts_and_changes_nothing(world: World):
    world.rule("Write", mail(), trigger=when("created"))
    customer = person(world)
    world.ticket(subject="Help", customer=customer)
    before = everything()
    counted = go(world, customer, dry_run=True)
    assert everything() == before
    assert not AuditEntry._base_manager.filter(verb="erase").exists()
    assert go(world, customer).changed == counted.changed


def test_another_tenants_rows_are_not_even_looked_at(world: World):
    theirs = make_world()
    customer = person(theirs)
    theirs.ticket(subject=f"{NAME} called", customer=customer)
    with theirs.acting():
        before = list(Event.objects.values_list("facts", flat=True))
    mine = person(world)
    go(world, mine, also=[NAME])
    with theirs.acting():
        assert list(Event.objects.values_list("facts", flat=True)) == before
    with pytest.raises(Refused, match="There is no customer"):
        go(world, customer)  # an id of theirs is nobody here
    with theirs.acting():
        assert list(Event.objects.values_list("facts", flat=True)) == before


def test_a_person_who_was_deleted_is_known_from_the_last_snapshot(world: World):
    customer = person(world)
    other = world.ticket(subject=f"{MAIL} wrote")
    with world.acting():
        key = customer.pk
        customer.delete()
    world.run()
    with world.acting():
        erase("helpdesk.customer", key)
    assert MAIL not in everything()
    assert other.pk


def test_rules_that_say_the_name_are_listed(world: World):
    rule = world.rule("VIP", step("note", "add_note", text=f"Call {NAME}"))
    customer = person(world)
    assert go(world, customer).rules == ((rule.pk, "VIP"),)


def test_what_is_no_person_is_refused(world: World):
    ticket = world.ticket()
    with world.acting(), pytest.raises(Refused, match="isn't a person"):
        erase("helpdesk.ticket", ticket.pk)


def test_the_command_says_what_is_left_to_do(world: World, capsys: pytest.CaptureFixture[str]):
    world.rule("Write", mail(), trigger=when("created"))
    customer = world.customer(name="Zoe", email=MAIL)
    world.ticket(subject="Help", customer=customer)
    who = f"helpdesk.customer:{customer.pk}"
    call_command("automation_erase", who, "--tenant", world.tenant.slug, "--dry-run")
    said = capsys.readouterr().out
    assert "Would change: 1 attempts, 2 events, 1 steps." in said
    assert "full of it: Zoe." in said
    call_command("automation_erase", who, "--tenant", world.tenant.slug, "--json")
    assert json.loads(capsys.readouterr().out)["changed"]["events"] == 2
    for wrong in ((who, "nobody"), ("helpdesk.customer", world.tenant.slug), ("helpdesk.car:1", world.tenant.slug)):
        with pytest.raises(CommandError):
            call_command("automation_erase", wrong[0], "--tenant", wrong[1])


def test_of_a_member_the_name_goes_and_what_they_did_stays(world: World):
    world.answer = lambda call: Outcome.rejected("Anastasia Quill isn't known here")
    User.objects.filter(pk=world.ana.user_id).update(
        first_name="Anastasia", last_name="Quill", email="ana@desk.example"
    )
    hook = step("tell", "call_webhook", connection="hook", body='{"by": "Anastasia Quill"}')
    world.rule("Tell", hook, trigger=when("updated"))
    ticket = world.ticket(subject="Ask Anastasia Quill, ana@desk.example")
    event = world.change(ticket, priority="urgent")
    Notice._base_manager.update(sent_at=clock.now(), recipients=["ana@desk.example", "b@desk.example"])
    assert event.actor == "Ana"
    call_command("automation_erase", f"member:{world.ana.pk}", "--tenant", world.tenant.slug)
    text = everything()
    for word in ("anastasia quill", "ana@desk.example"):
        assert word not in text
    event.refresh_from_db()
    assert (event.actor, event.actor_id) == ("", world.ana.user_id)
    assert event.facts["after"] == {"priority": "urgent"}
    assert event.details_removed_at is None
    with pytest.raises(CommandError, match="no member"):
        call_command("automation_erase", "member:999999", "--tenant", world.tenant.slug)


def test_what_retention_removes_at_the_same_moment_is_not_written_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer = person(world)
    world.ticket(subject="My left leg", customer=customer)
    runs_of = erasing.runs_of

    def strip_first(ids: list[int]) -> list[int]:
        with world.acting():
            Event.objects.update(facts={}, details_removed_at=clock.now())
        return runs_of(ids)

    monkeypatch.setattr(erasing, "runs_of", strip_first)
    go(world, customer)
    with world.acting():
        assert [event.facts for event in Event.objects.filter(model="helpdesk.ticket")] == [{}]


def test_who_is_not_there_can_not_be_erased(world: World) -> None:
    person(world)
    other = make_world()
    stranger = other.customer(name=NAME, email=MAIL)
    for number in (stranger.pk, 10**9):
        with pytest.raises(CommandError, match="There is no customer"):
            call_command("automation_erase", f"helpdesk.customer:{number}", tenant=world.tenant.slug)
    with world.acting():
        assert not AuditEntry.objects.filter(verb="erase").exists()


def test_what_is_left_of_a_deleted_person_can_be_erased_again_and_again(world: World) -> None:
    customer = person(world)
    key = customer.pk
    with world.acting():
        customer.delete()
    for _time in range(2):
        with world.acting():
            erase("helpdesk.customer", key)
    assert NAME.lower() not in everything()


def test_a_person_of_whom_only_their_records_events_are_left_can_be_erased(world: World) -> None:
    customer = person(world)
    ticket = world.ticket(customer=customer, subject="My left leg")
    key = customer.pk
    with world.acting():
        ticket.delete()
        customer.delete()
        Event.objects.filter(model="helpdesk.customer").delete()
        erase("helpdesk.customer", key)
    assert "left leg" not in everything()


def test_what_names_nobody_stays_and_a_retry_sends_nothing_that_was_erased(world: World) -> None:
    world.answer = lambda call: Outcome.rejected("The receiver answered 400: no such Gold Person")
    body = '{"who": "{{ ticket.customer.name }}", "what": "{{ ticket.subject }}"}'
    rule = world.rule(
        "Page", step("page", "call_webhook", connection="hook", body=body), mail(), trigger=when("created")
    )
    customer = person(world)
    ticket = world.ticket(subject="My left leg", customer=customer)
    go(world, customer)
    letter = world.dead_letters()[0]
    snapshot = letter.snapshot
    assert letter.error == snapshot["error"] == "The receiver answered 400: [erased]"
    assert snapshot["rule"]["name"] == "Page"
    assert snapshot["step"]["path"] == "page"
    assert snapshot["step"]["action"] == "call_webhook@1"
    assert world.steps(world.runs(rule)[0])["page"].input["connection"] == "hook"
    assert snapshot["event"]["facts"]["snapshot"]["priority"] == "normal"
    assert "left leg" not in everything()

    world.answer = lambda call: Outcome.done({})
    run = world.runs(rule)[0]
    sent = [call.run_id for call in world.calls()].count(run.pk)
    world.change(customer, run=False, name="", email="", phone="")
    with world.acting():
        retry(letter.pk)
    world.adopt_timers()
    world.run()
    assert [call.run_id for call in world.calls()].count(run.pk) == sent
    step_ = world.steps(world.runs(rule)[0])["page"]
    assert (step_.state, step_.reason) == ("dead", "template_error")
    assert "the values were erased" in step_.error

    world.change(customer, run=False, name="Somebody", email="", phone="")
    with world.acting():
        retry(world.dead_letters()[-1].pk)
    world.adopt_timers()
    world.run()
    assert world.states(rule) == ["succeeded"]
    params = world.steps(world.runs(rule)[0])["page"].input
    assert params["body"] == '{"who": "Somebody", "what": "My left leg"}'
    assert ticket.pk


def test_a_wait_keeps_its_times_so_that_a_lost_one_can_be_woken(world: World) -> None:
    rule = world.rule("Remind", {"id": "wait", "kind": "delay", "for": "P1D"}, mail(), trigger=when("created"))
    customer = person(world)
    with world.acting():
        Ticket(tenant=world.tenant, subject="My left leg", customer=customer).save()
        world.commit()
    world.run_until_held()
    run = world.runs(rule)[0]
    before = world.steps(run)["wait"].input
    assert "until" in before
    go(world, customer)
    assert world.steps(run)["wait"].input == before
    with world.acting():
        Timer.objects.filter(run_id=run.pk).delete()
        wake(run.pk)
        assert Timer.objects.get(run_id=run.pk).due_at.isoformat() == before["until"]


def test_what_hangs_on_erased_values_is_unknown_and_the_rest_is_explained_as_before(world: World) -> None:
    quiet = world.rule(
        "Quiet",
        step("n", "add_note", text="x"),
        trigger=when("created"),
        condition=leaf("subject", "contains", "Zebedee"),
    )
    loud = world.rule(
        "Loud", step("n", "add_note", text="x"), trigger=when("created"), condition=leaf("subject", "contains", "leg")
    )
    other = world.rule(
        "Other", step("n", "add_note", text="x"), trigger=when("created"), condition=leaf("status", "is", "closed")
    )
    customer = person(world)
    ticket = world.ticket(subject="My left leg", customer=customer)
    go(world, customer)
    with world.acting():
        found = {rule.pk: explain(rule.pk, model="helpdesk.ticket", record=ticket.pk) for rule in (quiet, loud, other)}
        run = world.runs(loud)[0]
        judged = trace(run.pk).condition
    answer = found[quiet.pk].answers[0]
    assert answer.gate == "erased"
    assert "the values were erased" in answer.sentence
    assert found[loud.pk].answers[0].gate == "ran"
    assert found[loud.pk].answers[0].agrees
    assert [(one.read, one.result, one.reason) for one in found[loud.pk].answers[0].comparisons] == [
        (None, "unknown", "erased")
    ]
    assert judged is not None
    assert (judged.result, judged.reason) == ("unknown", "erased")
    assert found[other.pk].answers[0].gate == "condition"
