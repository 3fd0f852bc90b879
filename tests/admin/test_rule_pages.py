"""Staff publish, delete, restore and hand over rules, after reading what would happen."""

from copy import deepcopy
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from operating import DEFINITION, Place, make_dead_run, make_live_run, make_rule
from operating import place as new_place

from automation.engine import rules
from automation.models import Notice, Rule, RuleDraft, Run
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry
from tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Place:
    return new_place(name="Acme Retail")


def waiting(acme: Place) -> Rule:
    """A rule with a run under way and another draft than what is live."""
    with acting_for(acme.tenant.pk):
        rule = make_rule(acme.tenant, name="Tell the lead")
        make_live_run(rule, state="waiting", step="waiting")
        definition = deepcopy(DEFINITION)
        definition["steps"][0]["params"]["text"] = "Please look"
        RuleDraft.objects.filter(rule=rule).update(definition=definition, revision=3)
    return rule


def page(rule: Rule, word: str) -> str:
    return f"/admin/automation/rule/{rule.pk}/{word}/"


def fresh(rule: Rule) -> Rule:
    with every_tenant():
        return Rule.objects.select_related("published", "owner").get(pk=rule.pk)


def states(rule: Rule) -> list[str]:
    with every_tenant():
        return list(Run.objects.filter(rule=rule).order_by("pk").values_list("state", flat=True))


def test_the_page_of_a_rule_leads_to_what_can_be_done_and_counts_its_versions(staff: Client, acme: Place) -> None:
    shown = staff.get(page(waiting(acme), "change")).content.decode()
    assert all(f'/{word}/">' in shown for word in ("publish", "owner", "delete"))
    assert "version 1: 1" in shown


def test_publishing_is_read_first_and_keeps_or_cancels(staff: Client, acme: Place) -> None:
    rule = waiting(acme)
    shown = staff.get(page(rule, "publish")).content.decode()
    assert "The step “tell” is changed: params." in shown
    assert "1 run of version 1 is under way (1 at “tell”)." in shown

    answer = staff.post(page(rule, "publish"), {"revision": 3, "waiting": "cancel", "note": "shorter"})

    assert answer.status_code == 302
    live = fresh(rule).published
    assert live is not None
    assert (live.number, live.note) == (2, "shorter")
    assert states(rule) == ["cancelled"]


@pytest.mark.parametrize(
    "data", [{"revision": 2, "waiting": "keep"}, {"revision": 3, "waiting": "drop"}, {"waiting": "keep"}]
)
def test_an_older_draft_or_a_word_that_says_nothing_publishes_nothing(
    staff: Client, acme: Place, data: dict[str, Any]
) -> None:
    rule = waiting(acme)
    answer = staff.post(page(rule, "publish"), data)
    assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True)
    live = fresh(rule).published
    assert live is not None
    assert live.number == 1


@pytest.mark.case("N01")
def test_a_rule_is_deleted_with_a_reason_and_brought_back(staff: Client, acme: Place) -> None:
    rule = waiting(acme)
    with acting_for(acme.tenant.pk):
        make_dead_run(rules.find(rule.pk))
    assert "runs under way 1 · open dead letters 1" in staff.get(page(rule, "delete")).content.decode()
    assert "errorlist" in staff.post(page(rule, "delete"), {"reason": ""}).content.decode()
    assert fresh(rule).deleted_at is None

    staff.post(page(rule, "delete"), {"reason": "not used"})

    assert fresh(rule).deleted_at is not None
    assert states(rule) == ["cancelled", "failed"]
    with every_tenant():
        entry = AuditEntry.objects.get(verb="delete")
    assert (entry.reason, entry.actor_name, entry.tenant_id) == ("not used", "Rosa Staff", acme.tenant.pk)
    assert staff.get(page(rule, "delete")).status_code == 404

    told = {"action": "undelete", "_selected_action": [rule.pk], "apply": "yes", "reason": "by mistake"}
    staff.post("/admin/automation/rule/", told)
    assert (fresh(rule).deleted_at, fresh(rule).on) == (None, False)


@pytest.mark.case("N01")
def test_the_page_of_a_deletion_asks_as_little_for_many_runs_as_for_few(staff: Client, acme: Place) -> None:
    def asked(rule: Rule) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            staff.get(page(rule, "delete"))
        return len(queries)

    few, many = waiting(acme), waiting(acme)
    with acting_for(acme.tenant.pk):
        for _run in range(30):
            make_live_run(rules.find(many.pk))
    asked(few)
    assert asked(many) == asked(few)


def test_the_runs_on_older_versions_are_cancelled(staff: Client, acme: Place) -> None:
    rule = waiting(acme)
    staff.post(page(rule, "publish"), {"revision": 3, "waiting": "keep"})
    assert states(rule) == ["waiting"]
    chosen = {"action": "cancel_older", "_selected_action": [rule.pk]}
    staff.post("/admin/automation/rule/", chosen)
    assert states(rule) == ["waiting"]
    staff.post("/admin/automation/rule/", {**chosen, "apply": "yes", "reason": "they page the wrong group"})
    assert states(rule) == ["cancelled"]
    with every_tenant():
        assert AuditEntry.objects.get(verb="cancel").reason == "they page the wrong group"


def test_a_rule_is_given_to_one_of_the_tenants_people_only(staff: Client, acme: Place) -> None:
    rule = waiting(acme)
    with acting_for(acme.tenant.pk):
        heir = MembershipFactory(tenant=acme.tenant, user=UserFactory(username="bo"))
    for login in ("nobody", "root", ""):
        assert "errorlist" in staff.post(page(rule, "owner"), {"login": login}).content.decode()
    staff.post(page(rule, "owner"), {"login": "bo", "reason": "moved"})
    assert fresh(rule).owner_id == heir.user_id


@pytest.mark.case("P04")
def test_a_user_who_is_made_inactive_leaves_his_rules_to_the_admins(staff: Client, acme: Place) -> None:
    rule = waiting(acme)
    with acting_for(acme.tenant.pk):
        owner = MembershipFactory(tenant=acme.tenant, user=UserFactory(username="bo"))
        rules.give(rule.pk, owner_id=owner.user_id)
    form = {"username": "bo", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}

    staff.post(f"/admin/auth/user/{owner.user_id}/change/", form)

    assert not User.objects.get(pk=owner.user_id).is_active
    with acting_for(acme.tenant.pk):
        assert rules.find(rule.pk).on
        [notice] = Notice.objects.filter(kind="owner_gone")
        assert notice.recipients == [acme.admin.user.email]


def test_without_the_right_to_change_rules_nothing_is_done(client: Client, acme: Place) -> None:
    rule = waiting(acme)
    client.force_login(User.objects.create_user("looker", is_staff=True))
    for word in ("publish", "delete", "owner"):
        assert client.get(page(rule, word)).status_code in (302, 403)
