"""Bad input gets an error that says what is wrong, and nothing that was there before is lost."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from automation.catalog.action import Outcome
from automation.core.errors import DefinitionError
from automation.engine import rules
from automation.engine.effects import EffectCall, guarded
from automation.engine.operate import Refused
from automation.engine.posting import post_event, run_by_hand
from automation.models import Connection, Event, Rule, RuleVersion
from automation.outbound import Outbound, Sockets
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, make_world, step, when

TAG = step("t", "add_tags", tags=["old"])
WRONG: dict[str, tuple[Any, str]] = {
    "the wrong shape": ({"steps": {"first": TAG}}, "/steps"),
    "an unknown field": ({"condition": leaf("colour", "is", "red")}, "/condition/field"),
    "an unknown word": ({"colour": "red"}, "/colour"),
    "a template that doesn't end": (
        {"steps": [step("n", "add_note", text="{{ ticket.subject")]},
        "/steps/0/params/text",
    ),
    "a block that doesn't end": ({"steps": [step("n", "add_note", text="{% if 1 %}")]}, "/steps/0/params/text"),
    "a connection that isn't there": (
        {"steps": [step("c", "call_webhook", connection="theirs")]},
        "/steps/0/params/connection",
    ),
}


def deep(levels: int) -> Any:
    """Objects inside each other."""
    value: Any = "x"
    for _level in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("what", sorted(WRONG))
def test_a_wrong_draft_is_kept_for_its_author_and_the_live_version_goes_on(world: World, what: str) -> None:
    change, place = WRONG[what]
    rule = world.rule("Tag", TAG, trigger=when(fields=["subject"]))
    with world.acting():
        assert rule.published is not None
        draft = rules.save_draft(rule.pk, {**rule.published.definition, **change}, base_revision=rule.draft.revision)
        with pytest.raises(DefinitionError) as raised:
            rules.publish(rule.pk, revision=draft.revision)
        kept = rules.find(rule.pk)
        assert kept.draft.definition.items() >= change.items() or what != "an unknown word"
        assert kept.published_id == rule.published_id
        assert RuleVersion.objects.filter(rule=rule).count() == 1
    assert [problem.pointer for problem in raised.value.problems] == [place]
    assert all(problem.message.strip() for problem in raised.value.problems)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.fresh(ticket).tags == ["old"]


@pytest.mark.parametrize(
    "definition",
    [deep(5_000), {"steps": [step("n", "add_note", text="a\x00b")]}, {"steps": ["\ud800"]}, ["no object"], "text"],
    ids=["deep", "nul", "surrogate", "list", "text"],
)
def test_a_draft_that_cannot_be_stored_is_refused_and_the_one_before_stays(world: World, definition: Any) -> None:
    rule = world.rule("Tag", TAG)
    with world.acting():
        with pytest.raises((Refused, DefinitionError)) as raised:
            rules.save_draft(rule.pk, definition, base_revision=rule.draft.revision)
        assert str(raised.value)
        after = rules.find(rule.pk).draft
        assert (after.revision, after.definition) == (rule.draft.revision, rule.draft.definition)


@pytest.mark.parametrize(
    ("post", "says"),
    [
        (lambda tenant: post_event(tenant, "paid", data=deep(5_000)), "JSON"),
        (lambda tenant: post_event(tenant, "paid", data={"n": float("nan")}), "JSON"),
        (lambda tenant: post_event(tenant, "paid", data={"big": "x" * 70_000}), "65536"),
        (lambda tenant: post_event(tenant, "paid", data={"n": [1, "a\x00b"]}), "at /n/1 "),
        (lambda tenant: post_event(tenant, "paid", data={"n": {"m": "\ud800"}}), "at /n/m "),
        (lambda tenant: post_event(tenant, "", data={}), "1 to 120"),
        (lambda tenant: post_event(tenant, "paid", data=["no object"]), "object"),
    ],
    ids=["deep", "nan", "big", "nul", "surrogate", "no name", "list"],
)
def test_an_event_that_cannot_be_kept_is_refused_in_words_and_others_are_kept(
    world: World, post: Callable[[Any], object], says: str
) -> None:
    with world.acting():
        post_event(world.tenant, "before", data={"n": 1})
        with pytest.raises(ValueError, match=says):
            post(world.tenant)
        post_event(world.tenant, "after", data={"text": "a"})
        assert list(Event.objects.order_by("id").values_list("name", flat=True)) == ["before", "after"]


def test_a_nul_in_a_records_text_is_taken_out_and_the_change_and_its_event_stay(world: World) -> None:
    rule = world.rule("Tag", TAG, trigger=when("created"))
    with world.acting():
        ticket = Ticket(tenant=world.tenant, subject="Printer\x00 on fire\ud800")
        ticket.save()
    world.run()
    assert world.states(rule) == ["succeeded"]
    assert world.fresh(ticket).subject.startswith("Printer on fire")


@pytest.mark.case("W01")
@pytest.mark.parametrize(
    "endpoint",
    [
        "https://10.0.0.1/hook",
        "https://127.0.0.1/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/hook",
        "https://2130706433/",
        "http://example.com/",
    ],
)
def test_a_webhook_to_a_private_address_is_rejected_when_it_is_called_and_tried_once(
    world: World, settings: Settings, endpoint: str
) -> None:
    settings.AUTOMATION_ALLOW_LOOPBACK = False

    def really(call: EffectCall) -> Outcome:
        door = call.door
        door.outbound = Outbound(
            door.connection, allow_loopback=False, key=door.key, timeout=call.timeout, sockets=Sockets()
        )
        return guarded(call)

    with world.acting():
        found = Connection(tenant=world.tenant, name="hook", kind="webhook", endpoint=endpoint)
        found.set_secret("whsec_" + "A" * 32)
        found.save()
    rule = world.rule("Hook", step("c", "call_webhook", connection="hook"), trigger=when("created"))
    other = world.rule("Tag", TAG, trigger=when("created"))
    world.answer = really
    ticket = world.ticket()
    assert world.states(rule) == ["failed rejected"]
    (run,) = world.runs(rule)
    assert world.attempts(run, "c") == ["failed"]
    assert world.steps(run)["c"].error
    assert world.states(other) == ["succeeded"]
    assert world.fresh(ticket).tags == ["old"]


@pytest.mark.case("P01")
def test_a_rule_of_another_tenant_answers_like_one_that_never_was(world: World) -> None:
    other = make_world()
    theirs = other.rule("Theirs", TAG, trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}})
    ticket = world.ticket()
    messages = set()
    for rule_id in (theirs.pk, 10**12):
        with world.acting(), pytest.raises(Rule.DoesNotExist) as raised:
            run_by_hand(rule_id, ticket)
        messages.add(str(raised.value))
    assert len(messages) == 1
    assert world.runs() == []
    assert other.runs() == []
