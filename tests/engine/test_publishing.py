"""Before a draft is published people read what it would do; then runs under way finish on their version, or don't."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from automation.engine import rules
from automation.engine.operate import Refused
from automation.engine.patience import TookTooLong, at_most
from automation.models import Rule, RuleDraft
from automation.store import clock
from tenants.models import AuditEntry
from tests.engine.world import World, leaf, make_world, set_field, step, when
from tests.operating import make_dead_run

DAY = {"id": "wait", "kind": "delay", "for": "P1D"}
ON_SUBJECT = when(fields=["subject"])


def waiting(world: World, *, count: int = 3, **definition: Any) -> Rule:
    """A rule with runs that wait at its first step."""
    definition = {"trigger": ON_SUBJECT, **definition}
    rule = world.rule("Remind", DAY, step("a", "add_note", text="A"), step("b", "add_note", text="B"), **definition)
    for ticket in [world.ticket() for _ in range(count)]:
        world.change(ticket, run=False, subject="Go")
    world.pass_time(timedelta(hours=1))
    return rule


def redraft(world: World, rule: Rule, *steps: dict[str, Any], **definition: Any) -> RuleDraft:
    with world.acting():
        whole = {**rules.find(rule.pk).published.definition, "steps": list(steps), **definition}
        return rules.save_draft(rule.pk, whole, base_revision=RuleDraft.objects.get(rule=rule).revision)


def planned(world: World, rule: Rule) -> rules.Plan:
    with world.acting():
        return rules.plan(rule.pk)


class TestPlanning:
    @pytest.mark.case("V01")
    def test_it_says_what_changes_and_what_runs_under_way_will_do(self, world: World) -> None:
        rule = waiting(world)
        redraft(world, rule, step("x", "add_note", text="X"), step("b", "add_note", text="B!"), {**DAY, "id": "later"})

        found = planned(world, rule)

        assert (found.live, found.number, found.problems, found.nothing_new) == (1, 2, [], False)
        assert found.sentences()[:-2] == [
            "The step “x” is new.",
            "The step “b” is changed: params.",
            "The step “later” is new.",
            "The step “wait” is gone.",
            "The step “a” is gone.",
            "3 runs of version 1 are under way (3 at “wait”).",
            "They finish on version 1, with steps that the new version doesn't have: wait.",
        ]
        assert "They are cancelled: what they have not done yet isn't done." in found.sentences("cancel")

    def test_a_step_that_moved_is_told_from_one_that_changed(self, world: World) -> None:
        rule = waiting(world, count=0)
        redraft(world, rule, step("b", "add_note", text="B"), DAY, step("a", "add_note", text="A"))
        assert "The step “b” has moved." in planned(world, rule).sentences()

    def test_runs_that_wait_keep_new_ones_away_where_the_rule_says_so(self, world: World) -> None:
        rule = waiting(world)
        redraft(world, rule, DAY, step("b", "add_note", text="B"))
        said = "Until such a run has ended, new events of its record don't start the rule again."

        assert said in planned(world, rule).sentences()
        assert said not in planned(world, rule).sentences("cancel")

    def test_open_dead_letters_stay_with_their_version(self, world: World) -> None:
        rule = waiting(world, count=0)
        with world.acting():
            make_dead_run(rules.find(rule.pk))
        assert (
            "1 dead letter of version 1 is open: a retry goes on with that version." in planned(world, rule).sentences()
        )

    def test_a_draft_that_is_wrong_is_planned_with_its_problems(self, world: World) -> None:
        rule = waiting(world, count=1)
        redraft(world, rule, step("x", "dance"))

        found = planned(world, rule)

        assert [problem.code for problem in found.problems] == ["unknown_action"]
        assert found.existing is None
        assert found.under_way[0].use.runs == 1

    def test_a_draft_that_says_the_same_in_another_order_is_nothing_new(self, world: World) -> None:
        rule = waiting(world, count=0)
        with world.acting():
            draft = RuleDraft.objects.get(rule=rule)
            rules.save_draft(rule.pk, dict(reversed(draft.definition.items())), base_revision=draft.revision)
        assert planned(world, rule).nothing_new

    def test_a_first_version_has_nothing_to_compare_with(self, world: World) -> None:
        with world.acting():
            rule = rules.create("New", definition={"schema_version": 1, "trigger": ON_SUBJECT, "steps": [DAY]})
        found = planned(world, rule)
        assert (found.live, found.changes, found.under_way) == (None, [], [])

    def test_planning_writes_nothing(self, world: World) -> None:
        rule = waiting(world, count=1)
        with world.acting():
            before = (AuditEntry.objects.count(), RuleDraft.objects.get(rule=rule).revision)
            rules.plan(rule.pk)
            assert before == (AuditEntry.objects.count(), RuleDraft.objects.get(rule=rule).revision)


class TestUnderWay:
    @pytest.mark.case("V01")
    def test_versions_are_counted_until_their_runs_have_ended(self, world: World) -> None:
        rule = waiting(world)
        world.republish(rule, DAY, step("b", "add_note", text="B"))
        with world.acting():
            [old] = rules.older_in_use(rule.pk)
            assert (old.number, old.runs, old.at, old.live) == (1, 3, {"wait": 3}, False)
            assert old.oldest_at is not None

        world.run()

        with world.acting():
            assert rules.in_use(rule.pk) == []
        assert world.states(rule) == ["succeeded"] * 3

    @pytest.mark.case("V05")
    def test_runs_on_older_versions_are_cancelled_where_that_was_asked_for(self, world: World) -> None:
        rule = waiting(world)
        draft = redraft(world, rule, DAY, step("b", "add_note", text="B"))
        with world.acting():
            version = rules.publish(rule.pk, revision=draft.revision, waiting="cancel")
        late = world.ticket()
        world.change(late, run=False, subject="Go")
        world.pass_time(timedelta(hours=1))

        with world.acting():
            again = rules.cancel_older(rule.pk)
            entry = AuditEntry.objects.filter(verb="publish").latest("id")
            [use] = rules.in_use(rule.pk)

        assert (again.ended, again.asked) == (0, 0)
        assert world.states(rule)[:3] == ["cancelled cancelled_by"] * 3
        assert (use.number, use.runs, use.live) == (version.number, 1, True)
        assert entry.after == {"version": 2, "on": True, "waiting": "cancel"}
        world.adopt_timers()
        world.run()
        assert world.states(rule)[3] == "succeeded"

    def test_only_that_rules_runs_are_cancelled(self, world: World) -> None:
        other = waiting(world, count=1)
        rule = waiting(world, count=1)
        draft = redraft(world, rule, DAY)
        with world.acting():
            rules.publish(rule.pk, revision=draft.revision, waiting="cancel")
            assert [use.rule_id for use in rules.in_use()] == [other.pk]

    def test_what_a_draft_that_moved_on_would_cancel_is_not_cancelled(self, world: World) -> None:
        rule = waiting(world, count=1)
        draft = redraft(world, rule, DAY)
        with world.acting(), pytest.raises(rules.Conflict):
            rules.publish(rule.pk, revision=draft.revision - 1, waiting="cancel")
        assert world.states(rule) == ["waiting"]

    def test_words_that_say_nothing_are_refused(self, world: World) -> None:
        rule = waiting(world, count=0)
        with world.acting(), pytest.raises(ValueError, match="dance"):
            rules.publish(rule.pk, revision=0, waiting="dance")

    def test_a_rule_that_was_never_published_has_no_older_versions(self, world: World) -> None:
        with world.acting():
            rule = rules.create("New")
            with pytest.raises(Refused, match="never published"):
                rules.cancel_older(rule.pk)

    @pytest.mark.case("P01")
    def test_another_tenants_runs_are_not_counted_or_cancelled(self, world: World) -> None:
        rule = waiting(world, count=1)
        world.republish(rule, DAY)
        other = make_world()
        with other.acting():
            assert rules.in_use() == []
            for verb in (rules.plan, rules.cancel_older):
                with pytest.raises(Rule.DoesNotExist):
                    verb(rule.pk)


class TestExisting:
    def concerned(self, world: World, condition: Any, **more: Any) -> tuple[int | None, int | None]:
        with world.acting():
            definition = {
                "schema_version": 1,
                "trigger": when("updated"),
                "condition": condition,
                "steps": [DAY],
                **more,
            }
            found = rules.plan(rules.create("Draft", definition=definition).pk).existing
        assert found is not None
        return found.least, found.most

    def test_records_that_are_so_already_are_counted(self, world: World) -> None:
        for priority in ("urgent", "urgent", "low"):
            world.ticket(priority=priority)
        other = make_world()
        other.ticket(priority="urgent")

        assert self.concerned(world, leaf("priority", "changed_to", "urgent")) == (2, 2)
        assert self.concerned(world, leaf("priority", "is", "urgent")) == (2, 2)
        assert self.concerned(world, None) == (3, 3)
        assert self.concerned(world, {"none": [leaf("priority", "changed_to", "urgent")]}) == (1, 1)

    def test_what_only_an_event_knows_makes_it_a_range(self, world: World) -> None:
        for priority in ("urgent", "urgent", "low"):
            world.ticket(priority=priority)
        urgent, moved = leaf("priority", "is", "urgent"), leaf("status", "changed_from", "new")

        assert self.concerned(world, {"all": [urgent, moved]}) == (0, 2)
        assert self.concerned(world, {"any": [urgent, moved]}) == (2, 3)
        assert self.concerned(world, {"none": [urgent, moved]}) == (0, 1)
        assert self.concerned(world, moved) == (0, 3)
        assert self.concerned(world, {"all": [{"none": [moved]}, {"any": [urgent]}]}) == (0, 2)

    def test_people_read_that_they_are_left_alone(self, world: World) -> None:
        world.ticket(priority="urgent")
        definition = {"schema_version": 1, "condition": leaf("priority", "is", "urgent"), "steps": [DAY]}
        with world.acting():
            changed = rules.plan(rules.create("A", definition={**definition, "trigger": when("updated")}).pk)
            created = rules.plan(rules.create("B", definition={**definition, "trigger": when("created")}).pk)
        assert changed.sentences()[-2:] == [
            "It concerns 1 record already.",
            "They are left alone until they change.",
        ]
        assert created.sentences()[-1] == "They are left alone: it runs for new records only."

    def test_publishing_starts_nothing_for_records_that_are_so_already(self, world: World) -> None:
        world.ticket(priority="urgent")
        rule = world.rule("Later", set_field("s", "status", "open"), condition=leaf("priority", "is", "urgent"))
        world.run()
        assert world.runs(rule) == []

    def test_rules_that_no_change_starts_concern_no_records(self, world: World) -> None:
        for trigger in ({"kind": "manual", "params": {"model": "helpdesk.ticket"}}, when("deleted")):
            with world.acting():
                whole = {"schema_version": 1, "trigger": trigger, "condition": None, "steps": [DAY]}
                rule = rules.create("Hand", definition=whole)
                assert (rules.plan(rule.pk).problems, rules.plan(rule.pk).existing) == ([], None)

    def test_a_count_that_takes_too_long_is_given_up_and_nothing_else(self, world: World) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            before = cursor.fetchone()
            with pytest.raises(TookTooLong), at_most(0.05):
                cursor.execute("SELECT pg_sleep(5)")
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == before
        assert clock.now() is not None
