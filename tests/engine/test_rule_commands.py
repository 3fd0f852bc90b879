"""The doors to rules on the command line: planning, versions, deletion, owners, references."""

import json
from datetime import timedelta
from typing import Any

import pytest
from commands import told
from django.core.management import CommandError

from automation.engine import rules
from automation.engine.operate import Refused
from automation.models import Connection, DeadLetter, Limits, Rule, RuleDraft
from automation.store import clock
from tenants.models import AuditEntry, Membership
from tests.engine.world import World, make_world, step, when
from tests.factories import MembershipFactory, UserFactory
from tests.operating import make_dead_run, make_live_run

DAY = {"id": "wait", "kind": "delay", "for": "P1D"}
ON_SUBJECT = when(fields=["subject"])


def waiting(world: World, name: str = "Remind") -> Rule:
    rule = world.rule(name, DAY, step("a", "add_note", text="A"), trigger=ON_SUBJECT)
    world.change(world.ticket(), run=False, subject="Go")
    world.pass_time(timedelta(hours=1))
    return rule


def redraft(world: World, rule: Rule, *steps: dict[str, Any]) -> None:
    with world.acting():
        whole = {**rules.find(rule.pk).published.definition, "steps": list(steps)}
        rules.save_draft(rule.pk, whole, base_revision=RuleDraft.objects.get(rule=rule).revision)


class TestPublish:
    def test_a_plan_is_told_and_nothing_is_published(self, world: World) -> None:
        rule, tenant = waiting(world), ("--tenant", world.tenant.slug)
        redraft(world, rule, DAY)

        said = told("automation_publish", "Remind", *tenant, "--dry-run")
        plan = json.loads(told("automation_publish", rule.pk, *tenant, "--dry-run", "--json"))

        assert "The step “a” is gone.\n1 run of version 1 is under way (1 at “wait”)." in said
        assert (plan["number"], plan["under_way"][0]["runs"], plan["changes"][0]["kind"]) == (2, 1, "removed")
        with world.acting():
            assert rules.find(rule.pk).published.number == 1

    def test_publishing_may_cancel_what_is_under_way(self, world: World) -> None:
        rule, tenant = waiting(world), ("--tenant", world.tenant.slug)
        redraft(world, rule, DAY)

        told("automation_publish", rule.pk, *tenant, "--waiting", "cancel", "--note", "shorter")

        with world.acting():
            assert (rules.find(rule.pk).published.number, rules.find(rule.pk).published.note) == (2, "shorter")
        assert world.states(rule) == ["cancelled cancelled_by"]
        with pytest.raises(CommandError, match="Nothing has changed"):
            told("automation_publish", rule.pk, *tenant)

    def test_what_can_not_be_published_says_why(self, world: World) -> None:
        rule = waiting(world)
        redraft(world, rule, step("x", "dance"))
        with pytest.raises(CommandError, match="no action “dance@1”"):
            told("automation_publish", rule.pk, "--tenant", world.tenant.slug, "--dry-run")


class TestSwitch:
    def test_a_rule_is_switched_off_with_what_becomes_of_its_runs_and_on_again(self, world: World) -> None:
        rule, tenant = waiting(world), ("--tenant", world.tenant.slug)

        would = json.loads(
            told("automation_switch", "off", "Remind", *tenant, "--waiting", "cancel", "--dry-run", "--json")
        )
        assert (would["on"], would["runs"], world.states(rule)) == (False, 1, ["waiting"])
        with world.acting():
            assert rules.find(rule.pk).on

        said = told("automation_switch", "off", "Remind", *tenant, "--waiting", "cancel", "--reason", "sends twice")
        assert "is off." in said
        assert "Runs cancelled: 1" in said
        assert world.states(rule) == ["cancelled cancelled_by"]
        with world.acting():
            assert AuditEntry.objects.filter(verb="switch_off").latest("pk").reason == "sends twice"
        assert "already so" in told("automation_switch", "off", "Remind", *tenant)
        assert "is on." in told("automation_switch", "on", rule.pk, *tenant, "--reason", "mended")
        with world.acting():
            assert rules.find(rule.pk).on
            assert AuditEntry.objects.filter(verb="switch_on").latest("pk").reason == "mended"

    def test_what_is_gone_is_named_by_its_place(self, world: World) -> None:
        world.connection("hook")
        world.rule("Tell", step("call", "call_webhook", connection="hook"))
        tenant = ("--tenant", world.tenant.slug)
        told("automation_switch", "off", "Tell", *tenant)
        with world.acting():
            Connection.objects.all().delete()
        for dry in ([], ["--dry-run"]):
            with pytest.raises(CommandError, match=r"(?s)can't be switched on.*/steps/0.*“hook”"):
                told("automation_switch", "on", "Tell", *tenant, *dry)
        with pytest.raises(CommandError, match=r"no rule 'Tel' of this tenant. There is: Tell"):
            told("automation_switch", "on", "Tel", *tenant)
        with pytest.raises(CommandError, match="--waiting goes with off") as wrong:
            told("automation_switch", "on", "Tell", *tenant, "--waiting", "hold")
        assert wrong.value.returncode == 2


class TestExisting:
    def test_a_rule_that_has_lost_its_connection_says_so(self, world: World) -> None:
        world.connection("hook")
        rule = world.rule("Tell", step("call", "call_webhook", connection="hook"), trigger=ON_SUBJECT)
        with world.acting():
            Connection.objects.all().delete()
        with pytest.raises(CommandError, match=r"The rule is broken: /steps/0.*no connection “hook”"):
            told("automation_existing", rule.pk, "--tenant", world.tenant.slug, "--rate", "60/m")

    def test_a_rehearsal_counts_the_records_and_begins_nothing(self, world: World) -> None:
        world.ticket()
        world.rule("Remind", DAY)
        tenant = ("--tenant", world.tenant.slug)
        said = told("automation_existing", "Remind", *tenant, "--rate", "60/m", "--dry-run")
        assert "It concerns 1 record already.\nThey are run for at 60 a minute." in said
        assert told("automation_existing", "Remind", *tenant) == "It takes up no records.\n"

    def test_records_that_are_there_are_taken_up_and_left_alone_again(self, world: World) -> None:
        world.ticket()
        rule, tenant = world.rule("Remind", DAY), ("--tenant", world.tenant.slug)
        assert told("automation_existing", "Remind", *tenant) == "It takes up no records.\n"

        said = told("automation_existing", "Remind", *tenant, "--rate", "60/m", "--reason", "new")

        assert said.startswith("0 records so far, 60 a minute; seen to up to number 0 of ")
        assert json.loads(told("automation_existing", rule.pk, *tenant, "--json"))["rate"] == 60
        assert told("automation_existing", "Remind", *tenant, "--stop") == "It takes up no records.\n"
        with pytest.raises(CommandError, match="rate"):
            told("automation_existing", "Remind", *tenant, "--rate", "0/m")
        redraft(world, rule, step("a", "add_note", text="A"))
        said = told("automation_publish", "Remind", *tenant, "--existing-rate", "30/m")
        assert "It concerns 1 record already.\nThey are run for at 30 a minute." in said
        assert json.loads(told("automation_existing", rule.pk, *tenant, "--json"))["rate"] == 30


class TestVersions:
    def test_they_are_listed_until_they_have_drained(self, world: World) -> None:
        rule, tenant = waiting(world), ("--tenant", world.tenant.slug)
        redraft(world, rule, DAY)
        told("automation_publish", rule.pk, *tenant)

        [line] = json.loads(told("automation_versions", *tenant, "--older", "--json"))
        assert (line["rule_id"], line["number"], line["runs"], line["at"]) == (rule.pk, 1, 1, {"wait": 1})
        assert "wait: 1" in told("automation_versions", *tenant)
        with pytest.raises(CommandError, match="needs --rule"):
            told("automation_versions", *tenant, "--cancel-older")
        assert (
            told("automation_versions", *tenant, "--rule", rule.pk, "--cancel-older") == "No run is on any of them.\n"
        )
        assert world.states(rule) == ["cancelled cancelled_by"]


class TestDeletion:
    @pytest.mark.case("N01")
    def test_a_rule_is_deleted_with_what_waits_and_comes_back_off(self, world: World) -> None:
        rule, tenant = waiting(world), ("--tenant", world.tenant.slug)
        with world.acting():
            letter = make_dead_run(rules.find(rule.pk))
        dry = told("automation_delete", "Remind", *tenant, "--dry-run")
        assert dry == f"Rule {rule.pk} “Remind”: runs under way 1, open dead letters 1.\n"

        said = told("automation_delete", "Remind", *tenant, "--reason", "not used any more")

        assert "Runs cancelled: 1" in said
        with world.acting():
            assert DeadLetter.objects.get(pk=letter.pk).resolution == "rule_deleted"
            assert AuditEntry.objects.get(verb="delete").reason == "not used any more"
        assert "Remind" in told("automation_undelete", *tenant)
        with pytest.raises(CommandError, match="no rule 'Remind'"):
            told("automation_delete", "Remind", *tenant)
        told("automation_undelete", rule.pk, *tenant)
        with world.acting():
            assert not rules.find(rule.pk).on
        assert world.states(rule) == ["cancelled cancelled_by", "failed exhausted"]
        assert told("automation_undelete", *tenant) == "No deleted rule can be brought back.\n"
        with pytest.raises(CommandError, match="isn't deleted"):
            told("automation_undelete", rule.pk, *tenant)

    @pytest.mark.case("V05")
    def test_a_run_that_began_while_its_rule_was_deleted_does_not_come_back_with_it(self, world: World) -> None:
        rule = world.rule("Remind", DAY)
        with world.acting():
            rules.delete(rule.pk)
            make_live_run(Rule.objects.select_related("published").get(pk=rule.pk))
            rules.undelete(rule.pk)
            rules.switch_on(rule.pk)
        assert world.states(rule) == ["cancelled cancelled_by"]

    def test_a_rule_comes_back_only_where_there_is_room(self, world: World) -> None:
        rule = world.rule("Remind", DAY)
        with world.acting():
            rules.delete(rule.pk)
            Limits.objects.filter(tenant=world.tenant).update(rules=1)
            rules.create("Another")
            with pytest.raises(Refused, match="“rules”"):
                rules.undelete(rule.pk)
            assert rules.deleted() == [rule]
            Rule.objects.filter(pk=rule.pk).update(deleted_at=clock.now() - timedelta(days=31))
            assert rules.deleted() == []

    @pytest.mark.case("P01")
    def test_another_tenants_deleted_rule_is_none(self, world: World) -> None:
        rule, other = world.rule("Remind", DAY), make_world()
        with world.acting():
            rules.delete(rule.pk)
        assert told("automation_undelete", "--tenant", other.tenant.slug) == "No deleted rule can be brought back.\n"
        with pytest.raises(CommandError, match="There is no rule"):
            told("automation_undelete", rule.pk, "--tenant", other.tenant.slug)


class TestOwners:
    def test_rules_of_somebody_who_left_are_listed_and_handed_over(self, world: World) -> None:
        tenant = ("--tenant", world.tenant.slug)
        with world.acting():
            bo = MembershipFactory(tenant=world.tenant, user=UserFactory(username="bo"), role="editor")
        rule = world.rule("Remind", DAY)
        told("automation_owners", *tenant, "--rule", rule.pk, "--to", "bo")
        with world.acting():
            Membership.objects.filter(pk=bo.pk).update(is_active=False)

        assert json.loads(told("automation_owners", *tenant, "--json")) == [
            {"rule": rule.pk, "name": "Remind", "owner": "bo"}
        ]
        with pytest.raises(CommandError, match="one of the tenant's people"):
            told("automation_owners", *tenant, "--gone", "--to", "bo")
        assert (
            told("automation_owners", *tenant, "--from", "bo", "--to", world.ana.user.username)
            == "No rule that is on has lost its owner.\n"
        )
        rule.refresh_from_db()
        assert rule.owner_id == world.ana.user_id

    def test_words_that_do_not_go_together_are_refused(self, world: World) -> None:
        tenant = ("--tenant", world.tenant.slug)
        for args in (("--to", "bo"), ("--gone",)):
            with pytest.raises(CommandError, match="--to goes with"):
                told("automation_owners", *tenant, *args)
        with pytest.raises(CommandError, match="no user 'nobody'"):
            told("automation_owners", *tenant, "--gone", "--to", "nobody")


class TestReferences:
    @pytest.mark.case("X01")
    def test_uses_are_listed_before_and_broken_rules_switched_off_after(self, world: World) -> None:
        tenant = ("--tenant", world.tenant.slug)
        world.connection()
        rule = world.rule("Call", step("c", "call_webhook", connection="hook"))
        said = told("automation_references", *tenant, "--connection", "hook")
        assert said == f"{world.tenant.slug}: rule {rule.pk}: The rule “Call” uses it and will be switched off.\n"
        assert told("automation_references", *tenant, "--field", "helpdesk.ticket.status") == "No rule uses it.\n"
        for name, near in (("hoook", "There is: hook"), ("other", "There is: hook")):
            with pytest.raises(CommandError, match=f"no connection '{name}'. {near}"):
                told("automation_references", *tenant, "--connection", name)
        with pytest.raises(CommandError, match=r"no field 'helpdesk.ticket.prio'. There is: helpdesk.ticket.priority"):
            told("automation_references", "--field", "helpdesk.ticket.prio")
        with pytest.raises(CommandError, match="no member '1000000000'"):
            told("automation_references", *tenant, "--member", 10**9)
        assert told("automation_references", *tenant) == "No rule that is on has lost what it names.\n"
        with world.acting():
            Connection.objects.all().delete()
        assert "“Call” uses it" in told("automation_references", *tenant, "--connection", "hook")
        assert "is broken" in told("automation_references", "--switch-off", "--dry-run")

        [line] = json.loads(told("automation_references", *tenant, "--json"))
        assert (line["rule"], line["switched_off"]) == (rule.pk, False)
        assert "was switched off" in told("automation_references", "--switch-off")
        assert told("automation_references") == "No rule that is on has lost what it names.\n"
        with world.acting():
            assert not rules.find(rule.pk).on
