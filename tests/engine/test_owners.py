"""Rules whose owner has left, or that have lost what they name, are found wherever it happened, and told of once."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from automation.catalog import registry
from automation.core.errors import DefinitionError
from automation.engine import references, rules, ruleset, tending
from automation.engine.operate import Refused
from automation.engine.rules import owners
from automation.engine.tending import Tending
from automation.engine.usages import Gone, usages
from automation.models import Connection, Lane, Notice, Rule, RuleDraft, Sweep, Worker
from automation.store import claims, clock
from tenants.context import every_tenant
from tenants.models import AuditEntry, Group, Membership
from tests.engine.world import World, leaf, make_world, set_field, step, when
from tests.factories import GroupFactory, MembershipFactory, UserFactory

DAY = {"id": "wait", "kind": "delay", "for": "P1D"}
ON_SUBJECT = when(fields=["subject"])
PAGE = step("page", "call_webhook", connection="hook")


def joined(world: World, role: str = "editor") -> Membership:
    """Somebody else of the tenant."""
    with world.acting():
        member: Membership = MembershipFactory(tenant=world.tenant, user=UserFactory(), role=role)
    return member


def owned(world: World, owner: Membership, name: str = "Theirs") -> Rule:
    rule = world.rule(name, set_field("s", "status", "open"), trigger=ON_SUBJECT)
    with world.acting():
        rules.give(rule.pk, owner_id=owner.user_id)
    return rule


def round_() -> None:
    """A whole round of the chore, by a process that has just begun."""
    with every_tenant():
        Sweep.objects.filter(name__startswith="tending").delete()
        for _slice in range(100):  # on a busy machine a round takes more than one
            Tending(uuid.uuid4(), every=0).run()
            if Sweep.objects.get(pk="tending").place is None:
                return
    pytest.fail("the round doesn't end")


def notices(world: World, kind: str) -> list[Notice]:
    with world.acting():
        return list(Notice.objects.filter(kind=kind).order_by("id"))


def is_on(world: World, rule: Rule) -> bool:
    with world.acting():
        return rules.find(rule.pk).on


class TestOwners:
    def test_a_rule_is_given_to_somebody_else_of_the_tenant_once(self, world: World) -> None:
        heir, rule = joined(world), world.rule("Mine", DAY)
        with world.acting():
            for _time in range(2):
                rules.give(rule.pk, owner_id=heir.user_id, reason="moved on")
            [entry] = AuditEntry.objects.filter(verb="give")
        rule.refresh_from_db()
        assert rule.owner_id == heir.user_id
        assert (entry.before, entry.after, entry.reason) == (
            {"owner": world.ana.user_id},
            {"owner": heir.user_id},
            "moved on",
        )

    def test_who_is_not_there_can_not_own_a_rule(self, world: World) -> None:
        rule, left, locked, stranger = world.rule("Mine", DAY), joined(world), joined(world), make_world().ana
        with world.acting():
            Membership.objects.filter(pk=left.pk).update(is_active=False)
            User.objects.filter(pk=locked.user_id).update(is_active=False)
            for user_id in (left.user_id, locked.user_id, stranger.user_id, 0):
                with pytest.raises(Refused, match="owner"):
                    rules.give(rule.pk, owner_id=user_id)

    @pytest.mark.case("P01")
    def test_another_tenants_rule_can_not_be_given_away(self, world: World) -> None:
        rule, other = world.rule("Mine", DAY), make_world()
        with other.acting(), pytest.raises(Rule.DoesNotExist):
            rules.give(rule.pk, owner_id=other.ana.user_id)

    def test_all_rules_of_somebody_are_handed_over(self, world: World) -> None:
        leaver, heir = joined(world), joined(world)
        mine, theirs = world.rule("Mine", DAY), [owned(world, leaver, name) for name in ("One", "Two")]
        with world.acting():
            for rule in rules.owned_by(leaver.user_id):
                rules.give(rule.pk, owner_id=heir.user_id)
            assert rules.owned_by(leaver.user_id) == []
            assert rules.owned_by(heir.user_id) == theirs
            assert rules.owned_by(world.ana.user_id) == [mine]


class TestRounds:
    @pytest.mark.case("P04")
    def test_a_user_who_was_deactivated_by_a_program_is_told_of_once_and_the_rule_goes_on(self, world: World) -> None:
        leaver = joined(world)
        owned(world, leaver)
        round_()
        assert notices(world, "owner_gone") == []
        User.objects.filter(pk=leaver.user_id).update(is_active=False)

        round_()
        round_()

        [notice] = notices(world, "owner_gone")
        assert notice.title == "“Theirs” has lost its owner"
        assert notice.recipients == [world.ana.user.email]
        assert notice.cases == 1
        ticket = world.ticket()
        world.change(ticket, subject="Go")
        assert world.fresh(ticket).status == "open"

    def test_after_it_was_handed_over_and_the_next_one_leaves_it_is_told_again(self, world: World) -> None:
        first, second = joined(world), joined(world)
        rule = owned(world, first)
        for leaver in (first, second):
            with world.acting():
                rules.give(rule.pk, owner_id=second.user_id) if leaver is second else None
                assert rules.owner_gone() == []
                Membership.objects.filter(pk=leaver.pk).update(is_active=False)
                assert rules.owner_gone() == [rule]
            round_()
        assert len(notices(world, "owner_gone")) == 2

    def test_several_rules_of_one_owner_are_one_notice(self, world: World) -> None:
        leaver = joined(world)
        for name in ("One", "Two"):
            owned(world, leaver, name)
        with world.acting():
            Membership.objects.filter(pk=leaver.pk).update(is_active=False)
        round_()
        [notice] = notices(world, "owner_gone")
        assert notice.title == "2 rules have lost their owner"
        assert "“One”\n“Two”" in notice.text

    @pytest.mark.case("P04")
    def test_rules_whose_owner_was_deleted_are_flagged_and_told_of_once_each(self, world: World) -> None:
        first, second = joined(world), joined(world)
        early, late = owned(world, first, "Early"), owned(world, second, "Late")
        for leaver in (first, second):
            with world.acting():
                Membership.objects.filter(pk=leaver.pk).delete()
            User.objects.get(pk=leaver.user_id).delete()
            round_()
            round_()

        with world.acting():
            assert rules.owner_gone() == [early, late]
        titles = [notice.title for notice in notices(world, "owner_gone")]
        assert titles == ["“Early” has lost its owner", "“Late” has lost its owner"]
        assert {notice.cases for notice in notices(world, "owner_gone")} == {1}

        heir = joined(world)
        with world.acting():
            rules.give(early.pk, owner_id=heir.user_id)
        round_()
        with world.acting():
            Membership.objects.filter(pk=heir.pk).delete()
        User.objects.get(pk=heir.user_id).delete()
        round_()
        assert [notice.title for notice in notices(world, "owner_gone")][2:] == ["“Early” has lost its owner"]

    def test_many_rules_without_an_owner_are_one_notice(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owners, "SUBJECT", 12)
        leaver = joined(world)
        for name in ("One", "Two", "Three"):
            owned(world, leaver, name)
        with world.acting():
            Membership.objects.filter(pk=leaver.pk).delete()
        User.objects.get(pk=leaver.user_id).delete()
        round_()
        round_()
        [notice] = notices(world, "owner_gone")
        assert notice.title == "3 rules have lost their owner"

    def test_an_owner_who_came_back_and_leaves_again_is_told_of_again(self, world: World) -> None:
        leaver = joined(world)
        owned(world, leaver)
        for is_active in (False, True, False, False):
            with world.acting():
                Membership.objects.filter(pk=leaver.pk).update(is_active=is_active)
            round_()
        assert len(notices(world, "owner_gone")) == 2

    @pytest.mark.case("X01")
    def test_what_a_program_deleted_switches_off_the_rules_that_name_it(self, world: World) -> None:
        world.connection()
        harmless = world.rule("Harmless", set_field("s", "status", "open"))
        broken = world.rule("Broken", PAGE)
        round_()
        with world.acting():
            Connection.objects.all().delete()

        round_()

        assert (is_on(world, harmless), is_on(world, broken)) == (True, False)
        assert [notice.kind for notice in notices(world, "rule_off")] == ["rule_off"]

    def test_a_round_that_finds_nothing_new_judges_no_rule(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.rule("Fine", set_field("s", "status", "open"))
        chore = Tending(uuid.uuid4(), every=0)
        judged: list[int] = []
        judge = tending.switch_off_broken
        monkeypatch.setattr(tending, "switch_off_broken", lambda *a, **k: judged.append(1) or judge(*a, **k))
        with every_tenant():
            for _time in range(2):
                Sweep.objects.filter(name__startswith="tending").delete()
                chore.run()
            assert len(judged) == 1
            with world.acting():
                GroupFactory(tenant=world.tenant)
            Sweep.objects.filter(name__startswith="tending").delete()
            chore.run()
        assert len(judged) == 2

    def test_after_a_publish_only_the_new_version_is_judged(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rule, _other = (world.rule(name, set_field("s", "status", "open")) for name in ("One", "Two"))
        chore = Tending(uuid.uuid4(), every=0)
        judged: list[str] = []
        judge = references.problems_of
        monkeypatch.setattr(
            references, "problems_of", lambda *a, **k: judged.append(a[0]["steps"][0]["id"]) or judge(*a, **k)
        )
        for expected in (["s", "s"], ["t"]):
            judged.clear()
            with every_tenant():
                Sweep.objects.filter(name__startswith="tending").delete()
                chore.run()
            assert judged == expected
            if expected == ["s", "s"]:
                world.republish(rule, set_field("t", "status", "open"))

    def test_a_round_goes_on_where_another_process_stopped(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        worlds = [world, make_world(), make_world()]
        seen: list[int] = []
        monkeypatch.setattr(tending, "SLICE", -1)
        monkeypatch.setattr(Tending, "_tend", lambda self, tenant_id: seen.append(tenant_id))
        with every_tenant():
            for _time in range(8):
                Tending(uuid.uuid4(), every=0).run()
        assert [pk for pk in seen if pk in {one.tenant.pk for one in worlds}] == [one.tenant.pk for one in worlds]
        assert len(seen) == len(set(seen))

    def test_one_tenants_fault_leaves_the_others_their_turn(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leaver, other = joined(world), make_world()
        owned(world, leaver)
        User.objects.filter(pk=leaver.user_id).update(is_active=False)
        judge = tending.switch_off_broken

        def fails(references: rules.References, **how: Any) -> list[Rule]:
            if references.tenant_id == other.tenant.pk:
                raise RuntimeError("a fault of ours")
            return judge(references, **how)

        monkeypatch.setattr(tending, "switch_off_broken", fails)
        round_()
        assert len(notices(world, "owner_gone")) == 1


class TestFields:
    @pytest.fixture
    def without_channel(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        yield
        ruleset.forget()

    def drop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = registry.models["helpdesk.ticket"]
        fields = {path: one for path, one in entry.fields.items() if path != "channel"}
        monkeypatch.setitem(registry.models, "helpdesk.ticket", replace(entry, fields=fields))
        ruleset.forget()

    @pytest.mark.case("X02")
    @pytest.mark.usefixtures("without_channel")
    def test_a_field_that_a_release_has_lost_switches_off_the_rules_that_read_it(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        condition = {"all": [leaf("status", "is", "new"), leaf("channel", "is", "web")]}
        broken = world.rule("Cloud", step("t", "add_tags", tags=["x"]), condition=condition)
        harmless = world.rule("Fine", step("u", "add_tags", tags=["fine"]))
        self.drop(monkeypatch)

        round_()

        assert (is_on(world, harmless), is_on(world, broken)) == (True, False)
        ticket = world.ticket()
        world.change(ticket, subject="Go")
        assert world.fresh(ticket).tags == ["fine"]
        with world.acting(), pytest.raises(DefinitionError):
            rules.switch_on(broken.pk)

    @pytest.mark.usefixtures("without_channel")
    def test_while_workers_of_another_release_live_it_is_left_alone(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.connection()
        broken = world.rule("Cloud", step("t", "add_tags", tags=["x"]), condition=leaf("channel", "is", "web"))
        names_a_hook = world.rule("Hook", PAGE)
        other = uuid.uuid4()
        claims.enlist(other, pool="northwind", release="1-another", host="beta", pid=7, lease=3600)
        self.drop(monkeypatch)
        with world.acting():
            Connection.objects.all().delete()

        round_()
        assert (is_on(world, broken), is_on(world, names_a_hook)) == (True, False)
        Worker.objects.filter(pk=other).update(expires_at=clock.now())

        round_()
        assert not is_on(world, broken)

    def test_the_rules_that_read_a_field_are_listed_before_it_goes(self, world: World) -> None:
        rule = world.rule(
            "Cloud", DAY, step("t", "add_note", text="{{ ticket.channel }}"), condition=leaf("channel", "is", "web")
        )
        world.rule("Fine", step("u", "add_tags", tags=["fine"]))
        with world.acting():
            [usage] = usages(Gone(fields=["helpdesk.ticket.channel"]))
            assert usages(Gone(fields=["helpdesk.ticket.subject"])) == []
        assert (usage.rule, usage.what, usage.steps) == (rule, "live", ("", "t"))


class TestUsages:
    @pytest.mark.case("X01")
    def test_rules_that_are_on_or_off_drafts_and_runs_under_way_are_told_apart(self, world: World) -> None:
        world.connection()
        on, off = world.rule("On", PAGE), world.rule("Off", PAGE, on=False)
        older = world.rule("Older", DAY, PAGE, trigger=ON_SUBJECT)
        world.change(world.ticket(), run=False, subject="Go")
        world.run_until_held()
        world.republish(older, DAY)
        drafted = world.rule("Drafted", DAY)
        with world.acting():
            definition = {**rules.find(drafted.pk).published.definition, "steps": [DAY, PAGE]}
            rules.save_draft(drafted.pk, definition, base_revision=RuleDraft.objects.get(rule=drafted).revision)
            found = usages(Gone(connections=["hook"]))

        assert [(usage.rule, usage.what, usage.version, usage.steps, usage.runs) for usage in found] == [
            (on, "live", 1, ("page",), 0),
            (off, "off", 1, ("page",), 0),
            (older, "older", 1, ("page",), 1),
            (drafted, "draft", None, ("page",), 0),
        ]
        assert [usage.sentence() for usage in found] == [
            "The rule “On” uses it and will be switched off.",
            "The rule “Off” uses it; it is off, and can't be switched on without.",
            "1 run on version 1 of “Older” uses it and will fail there.",
            "The draft of “Drafted” uses it, and can't be published without.",
        ]

    @pytest.mark.case("X01")
    def test_a_member_in_a_condition_and_a_group_in_an_action_are_uses(self, world: World) -> None:
        member = joined(world)
        with world.acting():
            GroupFactory(tenant=world.tenant, name="Support")
        asks = world.rule("Asks", set_field("s", "status", "open"), condition=leaf("assignee", "is", member.pk))
        gives = world.rule("Gives", step("g", "assign", to="group", group="Support"))
        with world.acting():
            assert [usage.rule for usage in usages(Gone(members=[member.pk]))] == [asks]
            assert [usage.rule for usage in usages(Gone(groups=["Support"]))] == [gives]
            Group.objects.all().delete()
            Membership.objects.filter(pk=member.pk).update(is_active=False)
        round_()
        assert (is_on(world, asks), is_on(world, gives)) == (False, False)
        assert Lane.objects.get(tenant=world.tenant).rules_version > 0
