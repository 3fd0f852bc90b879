"""People draft, publish, switch, order and delete rules."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from factories import GroupFactory, MembershipFactory
from operating import DEFINITION, Place, lease, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.core.errors import DefinitionError
from automation.engine import rules
from automation.engine.operate import Refused, pause
from automation.engine.references import switch_off_broken
from automation.engine.usages import Gone, usages
from automation.models import Connection, Limits, Notice, Rule, RuleDraft, RuleVersion, Run, Timer
from automation.store import clock
from tenants.context import Actor, acting_as, acting_for
from tenants.models import AuditEntry, Group

pytestmark = pytest.mark.django_db


def saying(text: str) -> dict[str, Any]:
    definition = deepcopy(DEFINITION)
    definition["steps"][0]["params"]["text"] = text
    return definition


def published(name: str = "Tell", text: str = "Urgent!") -> Rule:
    rule = rules.create(name, definition=saying(text))
    rules.publish(rule.pk, revision=0)
    rules.switch_on(rule.pk)
    return rule


def draft(rule: Rule) -> RuleDraft:
    return RuleDraft.objects.get(rule=rule)


class TestDrafting:
    def test_a_new_rule_is_off_last_in_the_order_and_belongs_to_its_maker(self, acme: Place) -> None:
        first, second = rules.create("One"), rules.create("  Two\n words ")  # white space is one space

        assert (first.on, first.published_id, first.owner_id) == (False, None, acme.actor.id)
        assert (second.name, second.position) == ("Two words", first.position + 1)
        assert draft(second).revision == 0
        assert rules.order() == [first.pk, second.pk]

    @pytest.mark.parametrize("name", ["", "  \n", "x" * 121, "a\x07b", "a\ufffdb", "a\x00b"])
    def test_a_name_that_is_empty_too_long_or_not_to_be_shown_is_refused(self, acme: Place, name: str) -> None:
        with pytest.raises(Refused, match="name"):
            rules.create(name)
        assert not Rule.objects.exists()

    def test_beyond_the_limit_a_rule_is_refused_by_the_limits_name(self, acme: Place) -> None:
        Limits.objects.filter(tenant=acme.tenant).update(rules=1)
        rules.create("One")

        with pytest.raises(Refused, match="“rules”"):
            rules.create("Two")

    def test_the_owner_is_one_of_the_tenants_people(self, acme: Place) -> None:
        stranger = new_place().admin.user

        with pytest.raises(Refused, match="owner"):
            rules.create("One", owner_id=stranger.pk)

    def test_any_json_object_is_kept_and_its_parts_get_ids_that_never_change(self, acme: Place) -> None:
        rule = rules.create("One")
        half = {"steps": [{"kind": "delay"}], "mood": "unfinished"}

        saved = rules.save_draft(rule.pk, half, base_revision=0)

        assert (saved.revision, saved.definition["mood"]) == (1, "unfinished")
        given = saved.definition["steps"][0]["id"]
        again = rules.save_draft(rule.pk, saved.definition, base_revision=1)
        assert again.definition["steps"][0]["id"] == given
        assert "id" not in half["steps"][0]

    def test_a_save_on_an_older_revision_is_refused_and_says_who_was_first(self, acme: Place) -> None:
        rule = rules.create("One")
        rules.save_draft(rule.pk, {"steps": []}, base_revision=0)

        with pytest.raises(rules.Conflict) as refusal:
            rules.save_draft(rule.pk, {"steps": [1]}, base_revision=0)

        assert (refusal.value.revision, refusal.value.changed_by) == (1, "Ana Admin")
        assert draft(rule).definition == {"steps": []}

    @pytest.mark.parametrize(
        "definition",
        [
            [],
            "text",
            {"note": "a\x00b"},
            {"note": "\ud800"},
            {"note": float("nan")},
            {"note": "x" * 70_000},
        ],
        ids=["list", "text", "nul", "surrogate", "nan", "large"],
    )
    def test_what_can_not_be_kept_is_refused_and_loses_nothing(self, acme: Place, definition: Any) -> None:
        rule = rules.create("One", definition={"steps": []})

        with pytest.raises(Refused):
            rules.save_draft(rule.pk, definition, base_revision=0)

        assert draft(rule).revision == 0

    def test_a_deeply_nested_draft_is_refused(self, acme: Place) -> None:
        rule = rules.create("One")
        deep: Any = "end"
        for _level in range(5000):
            deep = [deep]

        with pytest.raises(Refused, match="deep"):
            rules.save_draft(rule.pk, {"steps": deep}, base_revision=0)


class TestPublishing:
    @pytest.mark.case("V02")
    def test_the_old_version_stays_live_until_the_draft_is_published(self, acme: Place) -> None:
        rule = published(text="one")
        rules.save_draft(rule.pk, saying("two"), base_revision=draft(rule).revision)
        [live] = rules.live_rules(acme.tenant.pk)
        assert live.published is not None
        assert live.published.definition["steps"][0]["params"]["text"] == "one"
        before = acme.lane.rules_version

        version = rules.publish(rule.pk, revision=draft(rule).revision, note="shorter")

        [live] = rules.live_rules(acme.tenant.pk)
        assert live.published == version
        assert (version.number, version.note, version.published_by_id) == (2, "shorter", acme.actor.id)
        assert acme.lane.rules_version == before + 1
        entry = AuditEntry.objects.filter(verb="publish").latest("id")
        assert (entry.before, entry.after) == ({"version": 1}, {"version": 2, "on": True})

    def test_a_draft_that_is_wrong_is_refused_with_every_problem_and_its_place(self, acme: Place) -> None:
        definition = deepcopy(DEFINITION)
        definition["condition"]["field"] = "colour"
        definition["steps"][0]["action"] = "dance"
        rule = rules.create("One", definition=definition)

        with pytest.raises(DefinitionError) as refusal:
            rules.publish(rule.pk, revision=0)

        assert [problem.pointer for problem in refusal.value.problems] == ["/condition/field", "/steps/0/action"]
        assert refusal.value.problems == rules.check(definition)
        assert not RuleVersion.objects.exists()

    def test_a_draft_that_moved_on_is_not_published(self, acme: Place) -> None:
        rule = rules.create("One", definition=saying("one"))
        rules.save_draft(rule.pk, saying("two"), base_revision=0)

        with pytest.raises(rules.Conflict):
            rules.publish(rule.pk, revision=0)

    def test_the_same_definition_is_not_published_twice(self, acme: Place) -> None:
        rule = published()
        reordered = dict(reversed(draft(rule).definition.items()))
        saved = rules.save_draft(rule.pk, reordered, base_revision=draft(rule).revision)

        with pytest.raises(rules.NothingNew):
            rules.publish(rule.pk, revision=saved.revision)

        assert RuleVersion.objects.count() == 1

    def test_publishing_leaves_nothing_unpublished(self, acme: Place) -> None:
        definition = saying("one")
        del definition["steps"][0]["id"]
        rule = rules.create("One", definition=definition)

        version = rules.publish(rule.pk, revision=0)

        assert draft(rule).definition == version.definition
        with pytest.raises(rules.NothingNew):
            rules.publish(rule.pk, revision=draft(rule).revision)

    def test_a_version_never_changes(self, acme: Place) -> None:
        rule = published()

        with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
            RuleVersion.objects.filter(rule=rule).update(note="changed")

    @pytest.mark.case("V01")
    def test_runs_under_way_keep_their_version(self, acme: Place) -> None:
        rule = published(text="one")
        run = make_live_run(rules.find(rule.pk), state="waiting", step="waiting", kind="delay")
        saved = rules.save_draft(rule.pk, saying("two"), base_revision=draft(rule).revision)

        rules.publish(rule.pk, revision=saved.revision)

        run.refresh_from_db()
        assert (run.rule_version.number, run.state) == (1, "waiting")

    def test_an_older_version_comes_back_as_a_draft(self, acme: Place) -> None:
        rule = published(text="one")
        saved = rules.save_draft(rule.pk, saying("two"), base_revision=draft(rule).revision)
        rules.publish(rule.pk, revision=saved.revision)

        restored = rules.restore(rule.pk, 1)

        assert restored.definition["steps"][0]["params"]["text"] == "one"
        assert restored.revision == saved.revision + 1
        [live] = rules.live_rules(acme.tenant.pk)
        assert live.published is not None
        assert live.published.number == 2


class TestSwitching:
    def test_a_rule_that_was_never_published_can_not_be_switched_on(self, acme: Place) -> None:
        rule = rules.create("One", definition=saying("one"))

        with pytest.raises(Refused, match="Publish"):
            rules.switch_on(rule.pk)

    def test_switching_twice_does_nothing_more(self, acme: Place) -> None:
        rule = published()
        before = acme.lane.rules_version

        rules.switch_on(rule.pk)

        assert acme.lane.rules_version == before
        assert AuditEntry.objects.filter(verb="switch_on").count() == 1
        rules.switch_off(rule.pk)
        rules.switch_off(rule.pk)
        assert AuditEntry.objects.filter(verb="switch_off").count() == 1
        assert rules.live_rules(acme.tenant.pk) == []

    @pytest.mark.case("V04")
    def test_switching_off_holds_waiting_runs_and_switching_on_lets_them_go_on(self, acme: Place) -> None:
        rule = rules.find(published().pk)
        held = make_run(rule, reason="rule_off")
        make_timer(make_step(held), due_at=clock.now() + timedelta(seconds=30))
        cancelled = make_run(rule, state="cancelled")

        assert rules.switch_off(rule.pk).ended == 0
        held.refresh_from_db()
        assert held.state == "running"

        rules.switch_on(rule.pk)

        assert Timer.objects.get(run_id=held.pk).due_at <= clock.now()
        cancelled.refresh_from_db()
        assert cancelled.state == "cancelled"

    def test_waiting_runs_may_finish(self, acme: Place) -> None:
        rule = rules.find(published().pk)
        make_timer(make_step(make_run(rule, reason="rule_off")), due_at=clock.now() + timedelta(seconds=30))
        rules.switch_off(rule.pk)

        rules.switch_off(rule.pk, waiting="finish")

        assert rules.find(rule.pk).off_mode == "finish"
        assert Timer.objects.get().due_at <= clock.now()

    @pytest.mark.case("V04")
    def test_waiting_runs_may_be_cancelled(self, acme: Place) -> None:
        rule = rules.find(published().pk)
        runs = [make_live_run(rule, state=state) for state in ("pending", "running", "waiting")]
        busy = make_run(rule)
        lease(make_timer(make_step(busy, state="running")))

        done = rules.switch_off(rule.pk, waiting="cancel")

        assert (done.ended, done.asked) == (3, 1)
        assert {run.state for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {"cancelled"}
        rules.switch_on(rule.pk)
        assert not Run.objects.filter(pk__in=[run.pk for run in runs]).exclude(state="cancelled").exists()

    def test_switching_off_and_on_ends_the_pause_that_the_engine_made(self, acme: Place) -> None:
        rule = published()
        with acting_as(Actor("system", None, "")):
            pause.pause_rule(rule.pk, "rate")

        rules.switch_off(rule.pk)
        rules.switch_on(rule.pk)

        assert pause.open_pause(rule.pk) is None

    def test_a_rule_whose_connection_is_gone_can_not_be_switched_on(self, acme: Place) -> None:
        rule = paging(acme)
        rules.switch_off(rule.pk)
        Connection.objects.all().delete()

        with pytest.raises(DefinitionError) as refusal:
            rules.switch_on(rule.pk)

        assert refusal.value.problems[0].pointer == "/steps/0/params/connection"
        assert not rules.find(rule.pk).on


class TestOrder:
    def test_a_rule_is_put_at_its_place_and_all_are_numbered_anew(self, acme: Place) -> None:
        one, two, three = rules.create("One"), rules.create("Two"), rules.create("Three")

        rules.move(three.pk, position=1)
        assert rules.order() == [three.pk, one.pk, two.pk]
        assert [rules.find(pk).position for pk in rules.order()] == [1, 2, 3]

        rules.move(three.pk, position=99)
        assert rules.order() == [one.pk, two.pk, three.pk]

    @pytest.mark.case("O10")
    def test_rules_of_equal_position_run_in_the_order_of_their_ids(self, acme: Place) -> None:
        later = make_rule(acme.tenant, name="First", position=1)
        earlier = make_rule(acme.tenant, name="Second", position=1)

        assert [rule.pk for rule in rules.live_rules(acme.tenant.pk)] == sorted([later.pk, earlier.pk])

    def test_workers_learn_of_the_new_order(self, acme: Place) -> None:
        one, two = rules.create("One"), rules.create("Two")
        before = acme.lane.rules_version

        rules.move(two.pk, position=1)
        rules.move(two.pk, position=1)

        assert acme.lane.rules_version == before + 1
        assert rules.order() == [two.pk, one.pk]


class TestDeleting:
    @pytest.mark.case("V05")
    def test_a_deleted_rule_is_hidden_and_what_waits_is_cancelled(self, acme: Place) -> None:
        rule = rules.find(published().pk)
        overdue = [make_live_run(rule) for _ in range(3)]
        pause.pause_rule(rule.pk, "")

        assert rules.delete(rule.pk).ended == 3

        with pytest.raises(Rule.DoesNotExist):
            rules.find(rule.pk)
        with pytest.raises(Rule.DoesNotExist):
            rules.delete(rule.pk)
        assert rules.live_rules(acme.tenant.pk) == []
        assert {run.state for run in Run.objects.filter(pk__in=[run.pk for run in overdue])} == {"cancelled"}
        assert pause.open_pause(rule.pk) is None

    @pytest.mark.case("V05")
    def test_a_rule_that_is_brought_back_is_off_and_its_runs_stay_cancelled(self, acme: Place) -> None:
        rule = rules.find(published().pk)
        run = make_live_run(rule)
        rules.delete(rule.pk)

        rules.undelete(rule.pk)

        assert not rules.find(rule.pk).on
        run.refresh_from_db()
        assert run.state == "cancelled"

    def test_after_thirty_days_it_stays_deleted(self, acme: Place) -> None:
        rule = published()
        rules.delete(rule.pk)
        Rule.objects.filter(pk=rule.pk).update(deleted_at=clock.now() - timedelta(days=31))

        with pytest.raises(Refused, match="30 days"):
            rules.undelete(rule.pk)

    @pytest.mark.case("V05")
    def test_saving_and_publishing_drop_no_run_that_is_late(self, acme: Place) -> None:
        rule = rules.find(published(text="one").pk)
        late = [make_live_run(rule) for _ in range(5)]
        saved = rules.save_draft(rule.pk, saying("two"), base_revision=draft(rule).revision)
        rules.publish(rule.pk, revision=saved.revision)

        assert Timer.objects.filter(run_id__in=[run.pk for run in late], state="pending").count() == 5


class TestReferences:
    @pytest.mark.case("X01")
    def test_the_rules_that_use_something_are_listed_before_it_is_deleted(self, acme: Place) -> None:
        published()
        paging_rule, assigning_rule = paging(acme), assigning(acme)

        assert [one.rule for one in usages(Gone(connections=["pager"]))] == [paging_rule]
        assert [one.rule for one in usages(Gone(groups=["Support"]))] == [assigning_rule]
        assert usages(Gone(connections=["another"])) == []

    @pytest.mark.case("X01")
    def test_after_a_deletion_only_the_rules_that_used_it_are_off_and_their_people_are_told(self, acme: Place) -> None:
        harmless, paging_rule, assigning_rule = published(), paging(acme), assigning(acme)
        before = acme.lane.rules_version
        Group.objects.filter(name="Support").delete()

        assert switch_off_broken() == [assigning_rule]

        assert [rule.pk for rule in rules.live_rules(acme.tenant.pk)] == [harmless.pk, paging_rule.pk]
        assert acme.lane.rules_version == before + 1
        notice = Notice.objects.get()
        assert (notice.kind, notice.recipients) == ("rule_off", [acme.admin.user.email])
        entry = AuditEntry.objects.filter(verb="switch_off").latest("id")
        assert (entry.reason, entry.target) == ("broken_reference", f"rule:{assigning_rule.pk}")
        assert switch_off_broken() == []

    def test_a_member_who_left_can_not_be_named(self, acme: Place) -> None:
        gone = MembershipFactory(tenant=acme.tenant, is_active=False)

        assert rules.References(acme.tenant.pk).member(acme.admin.pk)
        assert not rules.References(acme.tenant.pk).member(gone.pk)

    def test_what_another_tenant_has_does_not_exist(self, acme: Place) -> None:
        other = new_place()
        with acting_for(other.tenant.pk):
            Connection(tenant=other.tenant, name="theirs", kind="pager").save()
            GroupFactory(tenant=other.tenant, name="Theirs")

        references = rules.References(acme.tenant.pk)

        assert references.connection("theirs") is None
        assert not references.group("Theirs")
        assert not references.member(other.admin.pk)


class TestOtherTenants:
    def test_no_verb_reaches_another_tenants_rule(self, acme: Place) -> None:
        other = new_place()
        with acting_for(other.tenant.pk):
            rule = make_rule(other.tenant)

        for verb in (
            lambda: rules.find(rule.pk),
            lambda: rules.save_draft(rule.pk, {}, base_revision=0),
            lambda: rules.publish(rule.pk, revision=0),
            lambda: rules.switch_on(rule.pk),
            lambda: rules.switch_off(rule.pk),
            lambda: rules.move(rule.pk, position=1),
            lambda: rules.rename(rule.pk, "Mine"),
            lambda: rules.restore(rule.pk, 1),
            lambda: rules.delete(rule.pk),
            lambda: rules.undelete(rule.pk),
        ):
            with pytest.raises(Rule.DoesNotExist):
                verb()

        with acting_for(other.tenant.pk):
            untouched = rules.find(rule.pk)
        assert (untouched.name, untouched.on, untouched.position) == ("Tell the lead", True, 1)
        assert rules.live_rules(acme.tenant.pk) == []


def paging(acme: Place) -> Rule:
    Connection(tenant=acme.tenant, name="pager", kind="pager", endpoint="http://pager.example").save()
    definition = deepcopy(DEFINITION)
    definition["steps"] = [
        {
            "id": "page",
            "kind": "action",
            "action": "page_on_call",
            "version": 1,
            "params": {"connection": "pager", "summary": "Urgent"},
        }
    ]
    return _live("Page", definition)


def assigning(acme: Place) -> Rule:
    GroupFactory(tenant=acme.tenant, name="Support")
    definition = deepcopy(DEFINITION)
    definition["steps"] = [
        {
            "id": "give",
            "kind": "action",
            "action": "assign",
            "version": 1,
            "params": {"to": "group", "group": "Support"},
        }
    ]
    return _live("Assign", definition)


def _live(name: str, definition: dict[str, Any]) -> Rule:
    rule = rules.create(name, definition=definition)
    rules.publish(rule.pk, revision=0)
    rules.switch_on(rule.pk)
    return rule
