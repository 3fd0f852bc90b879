"""Loops, contradictions and the rest are shown before they happen, with the rules and steps that make them."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from automation.catalog import registry
from automation.engine import rules, silence
from automation.engine.finding import Finding
from automation.engine.findings import findings, findings_of
from automation.engine.footprinting import known_fields
from automation.models import Connection, Rule, RuleVersion
from tests.engine.world import World, leaf, make_world, set_field, step, when


def of_kind(world: World, kind: str) -> list[Finding]:
    with world.acting():
        return [one for one in findings() if one.kind == kind]


def loops_of(rule_id: int, definition: dict[str, Any] | None = None) -> list[Finding]:
    return [one for one in findings_of(rule_id, definition) if one.kind == "loop"]


def named(finding: Finding) -> list[tuple[str, str]]:
    return [(place.rule_name, place.node) for place in finding.places]


@pytest.mark.case("L02")
def test_two_rules_that_flip_a_status_are_named_with_their_steps(world: World) -> None:
    world.rule("There", set_field("s", "status", "pending"), condition=leaf("status", "changed_to", "open"))
    world.rule("Back", set_field("t", "status", "open"), condition=leaf("status", "changed_to", "pending"))
    [loop] = of_kind(world, "loop")
    assert named(loop) == [("There", "s"), ("Back", "t")]
    assert loop.certain
    assert loop.sentence == (
        "These rules start each other in a circle: “There” (sets status) → “Back” (sets status) → “There”. "
        "The loop guard ends it."
    )


@pytest.mark.case("L01")
def test_a_rule_that_starts_itself_again_is_named(world: World) -> None:
    world.rule("Rewrite", set_field("s", "priority", "high"))
    [loop] = of_kind(world, "loop")
    assert loop.sentence == "“Rewrite” sets priority, which starts it again. The loop guard ends it."


@pytest.mark.case("L04")
def test_a_wanted_chain_is_no_loop(world: World) -> None:
    world.rule("First", set_field("s", "priority", "high"), condition=leaf("status", "changed_to", "open"))
    world.rule("Second", step("n", "add_tags", tags=["hot"]), condition=leaf("priority", "changed_to", "high"))
    world.rule("Third", set_field("s", "status", "pending"), condition=leaf("tags", "changed"))
    assert of_kind(world, "loop") == []


@pytest.mark.parametrize(
    ("condition", "trigger"),
    [
        (leaf("priority", "is_not", "high"), when("updated")),  # what it sets keeps it from running again
        (leaf("status", "changed_to", "open"), when("updated")),  # it doesn't touch what it looks at
        (None, when("updated", fields=["subject"])),
        (None, when("updated", sources=["person", "api"])),
        (None, when("created")),
        ({"all": [leaf("priority", "changed"), leaf("subject", "changed")]}, when("updated")),
    ],
)
def test_what_can_not_start_the_rule_again_is_no_loop(world: World, condition: Any, trigger: Any) -> None:
    world.rule("Once", set_field("s", "priority", "high"), condition=condition, trigger=trigger)
    assert of_kind(world, "loop") == []


def test_what_holds_of_the_record_in_both_rules_decides_too(world: World) -> None:
    by_mail = leaf("channel", "is", "email")
    world.rule("Mail", set_field("s", "priority", "high"), condition={"all": [by_mail, leaf("status", "changed")]})
    phone = {"all": [leaf("channel", "is", "phone"), leaf("priority", "changed")]}
    world.rule("Phone", set_field("s", "status", "open"), condition=phone)
    assert of_kind(world, "loop") == []  # a ticket is of one channel, and no rule changes it
    world.rule("Any", set_field("s", "status", "open"), condition=leaf("priority", "changed"))
    assert [named(one) for one in of_kind(world, "loop")] == [[("Mail", "s"), ("Any", "s")]]


def test_a_value_that_a_template_makes_may_be_any(world: World) -> None:
    rule = world.rule(
        "Copy", set_field("s", "subject", "{{ ticket.subject }}!"), condition=leaf("subject", "contains", "x")
    )
    with world.acting():
        [loop] = loops_of(rule.pk)
    assert not loop.certain
    assert loop.sentence == "“Copy” sets subject, which can start it again. The loop guard ends it."


@pytest.mark.case("L10")
def test_a_rule_that_makes_records_of_its_own_kind_is_named(world: World) -> None:
    values = {"title": "Another"}
    trigger = when("created", model="helpdesk.task")
    world.rule("Breed", step("c", "create_record", model="helpdesk.task", values=values), trigger=trigger)
    [loop] = of_kind(world, "loop")
    assert "makes a record of the kind that it listens to" in loop.sentence
    world.rule(
        "Other title",
        step("c", "create_record", model="helpdesk.task", values=values),
        trigger=trigger,
        condition=leaf("title", "is", "First"),
    )
    assert ["Other title"] not in [[place.rule_name for place in one.places] for one in of_kind(world, "loop")]


def test_what_the_steps_of_one_run_write_together_is_looked_at_together(world: World) -> None:
    close = [set_field("close", "status", "closed"), step("tag", "add_tags", tags=["done"])]
    trigger = when("updated", fields=["status", "comments"])
    world.rule("Close", *close, trigger=trigger, condition=leaf("status", "in", ["pending", "solved"]))
    assert of_kind(world, "loop") == []  # an event of its tags may carry the status, which is closed by then
    world.rule("Solve", *close[1:], set_field("s", "status", "solved"), trigger=trigger, condition=None)
    assert {place.rule_name for one in of_kind(world, "loop") for place in one.places} == {"Close", "Solve"}


def test_steps_that_are_off_or_never_reached_write_nothing(world: World) -> None:
    off = {**set_field("s", "priority", "high"), "off": True}
    world.rule("Off", off, {"id": "end", "kind": "stop"}, set_field("t", "priority", "low"))
    assert of_kind(world, "loop") == []


def test_tags_that_a_rule_adds_or_sets_are_known(world: World) -> None:
    tagged = leaf("tags", "has_none", ["seen"])
    world.rule("Add", step("a", "add_tags", tags=["seen"]), condition=tagged)
    world.rule("Set", set_field("s", "tags", ["seen", "late"]), condition=tagged)
    assert of_kind(world, "loop") == []
    world.rule("Remove", step("r", "remove_tags", tags=["seen"]), condition=leaf("tags", "has_any", ["seen"]))
    circles = [sorted(place.rule_name for place in one.places) for one in of_kind(world, "loop")]
    assert circles == [["Add", "Remove"], ["Remove", "Set"]]


def test_a_longer_circle_is_shown_once(world: World) -> None:
    pairs = [("subject", "priority", "high"), ("priority", "status", "open"), ("status", "subject", "Again")]
    for listens, writes, value in pairs:
        world.rule(f"On {listens}", set_field("s", writes, value), trigger=when("updated", fields=[listens]))
    [loop] = of_kind(world, "loop")
    assert [place.rule_name for place in loop.places] == ["On subject", "On priority", "On status"]


def test_a_draft_shows_the_loop_before_it_is_published(world: World) -> None:
    world.rule("There", set_field("s", "status", "pending"), condition=leaf("status", "changed_to", "open"))
    back = {
        "schema_version": 1,
        "trigger": when("updated"),
        "condition": leaf("status", "changed_to", "pending"),
        "steps": [set_field("t", "status", "open")],
    }
    with world.acting():
        rule = rules.create("Back", definition=back)
        assert findings() == []
        assert findings_of(rule.pk) == []
        [loop] = loops_of(rule.pk, rule.draft.definition)
        assert loops_of(rule.pk, {"trigger": None}) == []
    assert named(loop) == [("There", "s"), ("Back", "t")]


def test_two_rules_that_write_one_field_for_one_event_are_named(world: World) -> None:
    urgent = leaf("subject", "contains", "urgent")
    world.rule("High", set_field("s", "priority", "high"), condition=urgent, trigger=when("created"))
    world.rule(
        "Low", set_field("s", "priority", "low"), condition=leaf("channel", "is", "web"), trigger=when("created")
    )
    world.rule("Same", set_field("s", "priority", "low"), condition=urgent, trigger=when("created", "updated"))
    world.rule("Later", set_field("s", "priority", "low"), trigger=when("updated", fields=["channel"]))
    pairs = [[place.rule_name for place in one.places] for one in of_kind(world, "two_writers")]
    assert pairs == [["High", "Low"], ["High", "Same"]]


ADD = step("a", "add_tags", tags=["seen"])
REMOVE = step("r", "remove_tags", tags=["seen"])
NOTE = step("n", "add_note", text="x")


@pytest.mark.parametrize(
    ("first", "later", "clash"),
    [
        (NOTE, NOTE, False),
        (ADD, step("t", "add_tags", tags=["{{ ticket.status }}"]), False),
        (REMOVE, step("t", "remove_tags", tags=["late"]), False),
        (set_field("s", "tags", ["late"]), ADD, False),
        (ADD, set_field("s", "tags", ["late"]), True),
        (ADD, set_field("s", "tags", ["late", "seen"]), False),
        (set_field("s", "tags", ["seen"]), REMOVE, True),
        (REMOVE, set_field("s", "tags", ["late"]), False),
        (ADD, REMOVE, True),
        (ADD, step("t", "remove_tags", tags=["late"]), False),
        (ADD, step("t", "remove_tags", tags=["{{ ticket.status }}"]), True),
        (
            step("c", "create_record", model="helpdesk.task", values={"title": "One"}),
            step("c", "create_record", model="helpdesk.task", values={"title": "Two"}),
            False,
        ),
    ],
)
def test_only_what_a_later_rule_undoes_is_said_to_be_lost(
    world: World, first: dict[str, Any], later: dict[str, Any], clash: bool
) -> None:
    world.rule("First", first, trigger=when("created"))
    world.rule("Later", later, trigger=when("created"))
    assert [named(one) for one in of_kind(world, "two_writers")] == (
        [[("First", first["id"]), ("Later", later["id"])]] if clash else []
    )


def test_what_never_or_always_holds_is_named_with_its_node(world: World) -> None:
    never = {"id": "g", "all": [leaf("status", "is", "open"), leaf("status", "in", ["closed", "solved"])]}
    always = {"id": "h", "any": [leaf("status", "is_not", "open"), leaf("status", "is_not", "closed")]}
    world.rule("Never", step("n", "add_note", text="x"), condition=never)
    world.rule("Always", step("n", "add_note", text="x"), condition=always, trigger=when("created"))
    world.rule("Nearly", step("n", "add_note", text="x"), condition={"id": "k", **leaf("subject", "is_not", "Test")})
    [one] = of_kind(world, "never")
    assert (named(one), one.places[0].pointer, one.severity) == ([("Never", "g")], "/condition", "problem")
    assert [named(one) for one in of_kind(world, "always")] == [[("Always", "h")]]
    assert [named(one) for one in of_kind(world, "nearly_always")] == [[("Nearly", "k")]]


@pytest.mark.parametrize(
    "never",
    [
        {"all": [leaf("status", "is", "closed"), leaf("status_category", "is", "open")]},
        {"all": [leaf("customer.company_size", "gt", 50), leaf("customer.company_size", "lt", 51)]},
    ],
)
def test_what_follows_from_a_status_and_whole_numbers_are_known(world: World, never: dict[str, Any]) -> None:
    world.rule("Never", step("n", "add_note", text="x"), condition={"id": "g", **never})
    assert [named(one) for one in of_kind(world, "never")] == [[("Never", "g")]]


def test_what_follows_in_another_record_follows_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    task, ticket = registry.models["helpdesk.task"], registry.models["helpdesk.ticket"]
    there = replace(ticket.fields["status_category"], path="ticket.status_category", follows=None)
    fields = {**task.fields, "ticket.status_category": there}
    monkeypatch.setitem(registry.models, "helpdesk.task", replace(task, fields=fields))
    follows = known_fields()["helpdesk.task"]["ticket.status_category"].follows
    assert follows is not None
    assert (follows.field, follows.of("pending")) == ("ticket.status", "paused")


def test_a_loop_through_what_follows_from_a_status_is_seen_and_none_where_it_ends(world: World) -> None:
    ours, theirs = (leaf("status_category", "is", category) for category in ("open", "closed"))
    world.rule("Close", set_field("s", "status", "closed"), condition=ours)
    assert of_kind(world, "loop") == []  # what it sets is closed, and its condition asks for an open one
    world.rule("Reopen", set_field("s", "status", "open"), condition=theirs)
    assert [named(one) for one in of_kind(world, "loop")] == [[("Close", "s"), ("Reopen", "s")]]


def test_what_the_host_moves_with_a_write_may_start_the_next_rule(world: World) -> None:
    free, taken = (leaf("assigned_at", name) for name in ("is_empty", "is_not_empty"))
    world.rule("Take", set_field("s", "status", "open"), condition={"all": [leaf("subject", "changed"), free]})
    world.rule("Rename", set_field("s", "subject", "Mine"), condition={"all": [leaf("status", "changed"), taken]})
    assert [named(one) for one in of_kind(world, "loop")] == [[("Take", "s"), ("Rename", "s")]]


def test_an_arm_that_can_not_be_reached_is_named(world: World) -> None:
    note = [step("n", "add_note", text="x")]
    arms = [
        {"id": "urgent", "if": leaf("priority", "in", ["urgent", "high"]), "steps": []},
        {"id": "again", "if": leaf("priority", "is", "high"), "steps": note},
        {"id": "low", "if": leaf("priority", "is", "low"), "steps": []},
    ]
    branch = {"id": "split", "kind": "branch", "arms": arms, "otherwise": []}
    world.rule("Branches", branch, condition=leaf("priority", "is_not", "low"))
    assert [named(one) for one in of_kind(world, "arm_never")] == [[("Branches", "again")], [("Branches", "low")]]
    delayed = [{"id": "w", "kind": "delay", "for": "P1D"}, {**branch, "arms": arms[2:]}]
    world.rule("After a day", *delayed, condition=leaf("priority", "is_not", "low"))
    assert len(of_kind(world, "arm_never")) == 2  # a day later the priority may be another


def test_a_reference_that_is_gone_is_named_with_its_step(world: World) -> None:
    world.connection("hook")
    world.rule("Calls", step("c", "call_webhook", connection="hook"))
    with world.acting():
        Connection.objects.all().delete()
    [one] = of_kind(world, "dead_reference")
    assert named(one) == [("Calls", "c")]
    assert one.places[0].pointer.startswith("/steps/0")


@pytest.mark.parametrize(
    ("broken", "pointer"),
    [
        ({"condition": {"id": "which", "all": [leaf("colour", "is", "red")]}}, "/condition"),
        ({"steps": [step("c", "paint_it")]}, "/steps/0"),
    ],
)
def test_a_field_and_an_action_that_a_release_took_away_are_named(
    world: World, broken: dict[str, Any], pointer: str
) -> None:
    rule = world.rule("Notes", step("c", "add_note", text="x"), condition=leaf("priority", "is", "high"))
    definition = {**rule.published.definition, **broken}
    version = RuleVersion(rule=rule, tenant=world.tenant, number=99, definition=definition, sha256="0" * 64)
    with world.acting():
        version.save()
        Rule.objects.filter(pk=rule.pk).update(published=version)
    [one] = of_kind(world, "dead_reference")
    assert one.severity == "problem"
    assert one.places[0].pointer.startswith(pointer)
    with world.acting():
        assert [found.kind for found in findings_of(rule.pk)] == ["dead_reference"]


def test_setting_what_the_condition_asks_for_starts_nothing_again(world: World) -> None:
    urgent = leaf("priority", "is", "urgent")
    world.rule("Urgent", set_field("s", "priority", "urgent"), condition=urgent)
    assert of_kind(world, "loop") == []
    world.rule("Calm", set_field("t", "priority", "low"), condition=leaf("priority", "changed_to", "urgent"))
    assert of_kind(world, "loop") != []


def test_a_rule_that_went_silent_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.rule("Often", step("n", "add_note", text="x"), trigger=when(fields=["subject"]))
    world.rule("Seldom", step("n", "add_note", text="x"), trigger=when(fields=["channel"]))
    ticket = world.ticket()
    for number in range(6):
        world.change(ticket, subject=f"Change {number}")
    assert of_kind(world, "silent") == []
    later = timezone.now() + timedelta(days=20)
    monkeypatch.setattr(silence, "clock", SimpleNamespace(now=lambda: later))
    [one] = of_kind(world, "silent")
    assert one.sentence.startswith("“Often” has not run since ")
    assert " for 20 days" in one.sentence


def test_another_tenants_rules_make_no_loops_here(world: World) -> None:
    world.rule("There", set_field("s", "status", "pending"), condition=leaf("status", "changed_to", "open"))
    other = make_world()
    back = other.rule("Back", set_field("t", "status", "open"), condition=leaf("status", "changed_to", "pending"))
    assert of_kind(world, "loop") == of_kind(other, "loop") == []
    with world.acting(), pytest.raises(Rule.DoesNotExist):
        findings_of(back.pk)
