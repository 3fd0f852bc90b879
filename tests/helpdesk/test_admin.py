"""Staff work with tickets in the admin: links stay inside the tenant, and what is saved together is one event."""

import json
from typing import Any

import pytest
from django.utils import timezone

from automation.models import Event, Rule, RuleVersion
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry, Tenant
from tests.factories import (
    CommentFactory,
    CustomerFactory,
    GroupFactory,
    MembershipFactory,
    TaskFactory,
    TenantFactory,
    TicketFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme() -> Tenant:
    return TenantFactory(name="Acme")


@pytest.fixture
def contoso() -> Tenant:
    return TenantFactory(name="Contoso")


def form_of(ticket: Ticket, **changed: Any) -> dict[str, Any]:
    """What the page of a ticket posts when nothing but `changed` was touched."""
    form = {
        "subject": ticket.subject,
        "description": ticket.description,
        "status": ticket.status,
        "priority": ticket.priority,
        "channel": ticket.channel,
        "tags": ",".join(ticket.tags),
        "customer": ticket.customer_id or "",
        "assignee": ticket.assignee_id or "",
        "group": ticket.group_id or "",
    }
    for prefix in ("follower_links", "comments"):
        form |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    return form | changed


def events() -> list[Event]:
    with every_tenant():
        return list(Event.objects.order_by("id"))


def events_of(model: str) -> list[Event]:
    return [event for event in events() if event.model == model]


def url(ticket: Ticket) -> str:
    return f"/admin/helpdesk/ticket/{ticket.pk}/change/"


@pytest.mark.parametrize("model", ["customer", "ticket", "task"])
def test_lists_and_pages_open(staff, acme, model):
    customer = CustomerFactory(tenant=acme)
    ticket = TicketFactory(tenant=acme, customer=customer, assignee=MembershipFactory(tenant=acme), tags=["a"])
    task = TaskFactory(tenant=acme, ticket=ticket)
    record = {"customer": customer, "ticket": ticket, "task": task}[model]
    assert staff.get(f"/admin/helpdesk/{model}/?q=x").status_code == 200
    assert staff.get(f"/admin/helpdesk/{model}/add/").status_code == 200
    assert staff.get(f"/admin/helpdesk/{model}/{record.pk}/change/").status_code == 200


def test_the_list_of_tickets_takes_as_many_statements_for_40_as_for_one(staff, acme, django_assert_max_num_queries):
    def statements() -> int:
        with django_assert_max_num_queries(40) as seen:
            assert staff.get("/admin/helpdesk/ticket/").status_code == 200
        return len(seen)

    def make() -> None:
        TicketFactory(tenant=acme, customer=CustomerFactory(tenant=acme), assignee=MembershipFactory(tenant=acme))

    make()
    statements()
    one = statements()
    for _ in range(39):
        make()
    assert statements() == one


def test_a_new_ticket_gets_its_tenant_first_and_then_its_own_page(staff, acme):
    page = staff.post(
        "/admin/helpdesk/ticket/add/",
        {"tenant": acme.pk, "subject": "Help", "status": "new", "priority": "low", "channel": "phone", "tags": "b,a,b"},
    )
    with acting_for(acme.pk):
        ticket = Ticket.objects.get()
    assert page["Location"] == url(ticket)
    assert ticket.tags == ["a", "b"]
    [event] = events()
    assert (event.change, event.tenant_id, event.source, event.actor) == ("created", acme.pk, "person", "Rosa Staff")


NEW = {
    "ticket": ({"subject", "tags", "customer", "assignee", "group"}, {"created_at", "assigned_at"}),
    "customer": ({"name", "email", "plan"}, {"created_at"}),
    "task": ({"title", "due_on", "ticket", "assignee"}, {"assigned_at"}),
}


@pytest.mark.parametrize("model", NEW)
def test_whoever_adds_a_record_chooses_the_tenant_then_fills_in_all_of_it(staff, acme, model):
    address = f"/admin/helpdesk/{model}/add/"
    asked = staff.get(f"{address}?_popup=1").content.decode()
    assert f'<option value="{acme.pk}">Acme</option>' in asked
    assert '<input type="hidden" name="_popup" value="1">' in asked
    fields = staff.get(f"{address}?tenant={acme.pk}").context["adminform"].form.fields
    wanted, later = NEW[model]
    assert wanted <= set(fields)
    assert not later & set(fields)


def test_a_new_record_is_linked_without_javascript_too(staff, acme, contoso):
    ours, theirs = CustomerFactory(tenant=acme, name="Ours"), CustomerFactory(tenant=contoso, name="Theirs")
    page = staff.get(f"/admin/helpdesk/ticket/add/?tenant={acme.pk}").content.decode()
    assert f'<option value="{ours.pk}">' in page
    assert f'<option value="{theirs.pk}">' not in page
    assert f"tenant={acme.pk}" in page


@pytest.mark.parametrize("link", ["customer", "assignee", "group"])
def test_a_new_ticket_takes_no_row_of_another_tenant(staff, acme, contoso, link):
    make = {"customer": CustomerFactory, "assignee": MembershipFactory, "group": GroupFactory}[link]
    form = {"tenant": acme.pk, "subject": "Help", "status": "new", "priority": "low", "channel": "phone"}
    page = staff.post("/admin/helpdesk/ticket/add/", form | {link: make(tenant=contoso).pk})
    assert link in page.context["adminform"].form.errors
    assert not events_of("helpdesk.ticket")


def test_a_tenant_that_is_closed_or_never_was_gets_no_records(staff, acme):
    Tenant.objects.filter(pk=acme.pk).update(closed_at=timezone.now())
    for tenant in (acme.pk, 999_999, "x", ""):
        page = staff.post("/admin/helpdesk/ticket/add/", {"tenant": tenant, "subject": "Help"})
        assert page.status_code == 422
        assert "Choose one of these tenants" in page.content.decode()


def test_adding_another_one_stays_with_the_tenant(staff, acme):
    form = {"tenant": acme.pk, "name": "Lea", "plan": "free", "language": "en", "_addanother": "1"}
    page = staff.post(f"/admin/helpdesk/customer/add/?tenant={acme.pk}", form)
    assert page["Location"] == f"/admin/helpdesk/customer/add/?tenant={acme.pk}"


@pytest.mark.case("S13")
@pytest.mark.case("D05")
def test_fields_tags_followers_and_a_comment_saved_together_are_one_event_with_the_final_values(staff, acme):
    member = MembershipFactory(tenant=acme)
    ticket = TicketFactory(tenant=acme, tags=["old"])
    mark = events()[-1].pk
    form = form_of(ticket, subject="Changed", tags="vip,old", assignee=member.pk)
    form |= {
        "follower_links-TOTAL_FORMS": 1,
        "follower_links-0-member": member.pk,
        "follower_links-0-ticket": ticket.pk,
    }
    form |= {"comments-TOTAL_FORMS": 1, "comments-0-body": "Looking", "comments-0-ticket": ticket.pk}
    assert staff.post(url(ticket), form).status_code == 302
    [event] = [event for event in events() if event.pk > mark]
    assert event.facts["before"]["tags"] == ["old"]
    assert event.facts["after"] == {
        "subject": "Changed",
        "tags": ["old", "vip"],
        "assignee": member.pk,
        "followers": [member.pk],
        "comments": 1,
    }
    assert event.facts["snapshot"]["followers"] == [member.pk]


def test_saving_a_page_without_a_change_is_no_event(staff, acme):
    ticket = TicketFactory(tenant=acme, tags=["b", "a"], customer=CustomerFactory(tenant=acme))
    mark = len(events())
    assert staff.post(url(ticket), form_of(ticket)).status_code == 302
    assert len(events()) == mark


@pytest.mark.parametrize("link", ["customer", "assignee", "group"])
def test_a_row_of_another_tenant_is_neither_offered_nor_accepted(staff, acme, contoso, link):
    make = {"customer": CustomerFactory, "assignee": MembershipFactory, "group": GroupFactory}[link]
    ticket, ours, theirs = TicketFactory(tenant=acme), make(tenant=acme), make(tenant=contoso)
    page = staff.post(url(ticket), form_of(ticket, **{link: theirs.pk}))
    assert page.status_code == 200
    assert link in page.context["adminform"].form.errors
    asked = {"app_label": "helpdesk", "model_name": "ticket", "field_name": link, "tenant": acme.pk}
    answer = json.loads(staff.get("/admin/autocomplete/", asked).content)
    assert [row["id"] for row in answer["results"]] == [str(ours.pk)]
    assert f"tenant={acme.pk}" in staff.get(url(ticket)).content.decode()


def test_a_page_shows_the_last_comments_only(staff, acme):
    ticket = TicketFactory(tenant=acme)
    Comment._every.bulk_create([Comment(tenant=acme, ticket=ticket, body=f"comment {n}") for n in range(30)])
    CommentFactory(tenant=acme, ticket=TicketFactory(tenant=acme), body="elsewhere")
    page = staff.get(url(ticket)).content.decode()
    assert "comment 29" in page
    assert "comment 9<" not in page
    assert "elsewhere" not in page


@pytest.mark.case("S04")
def test_50_tickets_are_solved_with_one_click_as_one_event_each(staff, acme, django_assert_max_num_queries):
    tickets = [TicketFactory(tenant=acme, status="open") for _ in range(50)]
    TicketFactory(tenant=acme, status="closed")
    mark = events()[-1].pk
    chosen = [ticket.pk for ticket in tickets]
    with django_assert_max_num_queries(40):
        staff.post("/admin/helpdesk/ticket/", {"action": "solve", "_selected_action": chosen})
    found = [event for event in events() if event.pk > mark]
    assert [event.record for event in found] == sorted(chosen)
    assert {json.dumps(event.facts["after"]) for event in found} == {'{"status": "solved"}'}
    with every_tenant():
        assert AuditEntry.objects.filter(verb="ticket.solved").get().after["ids"]


def test_deleting_a_selection_is_captured_and_audited(staff, acme):
    tickets = [TicketFactory(tenant=acme) for _ in range(3)]
    staff.post(
        "/admin/helpdesk/ticket/",
        {"action": "delete_selected", "_selected_action": [one.pk for one in tickets], "post": "yes"},
    )
    assert [event.change for event in events()[-3:]] == ["deleted"] * 3
    with every_tenant():
        assert AuditEntry.objects.filter(verb="ticket.deleted").count() == 3


def manual_rule(tenant: Tenant) -> Rule:
    with acting_for(tenant.pk):
        rule = Rule.objects.create(name="Escalate", on=True)
        trigger = {"kind": "manual", "params": {"model": "helpdesk.ticket"}}
        version = RuleVersion.objects.create(rule=rule, number=1, definition={"trigger": trigger}, sha256="0")
        Rule.objects.filter(pk=rule.pk).update(published=version)
        return rule


def test_a_rule_is_started_by_hand_on_a_selection(staff, acme):
    rule, tickets = manual_rule(acme), [TicketFactory(tenant=acme) for _ in range(2)]
    form = {"action": "start_rule", "_selected_action": [one.pk for one in tickets]}
    page = staff.post("/admin/helpdesk/ticket/", form)
    assert "Escalate" in page.content.decode()
    assert not [event for event in events() if event.kind == "manual"]
    staff.post("/admin/helpdesk/ticket/", form | {"rule": rule.pk})
    found = [event for event in events() if event.kind == "manual"]
    assert sorted(event.record for event in found) == sorted(one.pk for one in tickets)
    assert {(event.name, event.source, event.actor) for event in found} == {(str(rule.pk), "person", "Rosa Staff")}


def test_a_rule_of_another_tenant_or_tickets_of_two_are_refused(staff, acme, contoso):
    theirs, ours, other = manual_rule(contoso), TicketFactory(tenant=acme), TicketFactory(tenant=contoso)
    staff.post("/admin/helpdesk/ticket/", {"action": "start_rule", "_selected_action": [ours.pk], "rule": theirs.pk})
    staff.post("/admin/helpdesk/ticket/", {"action": "start_rule", "_selected_action": [ours.pk, other.pk]})
    assert not [event for event in events() if event.kind == "manual"]
    page = staff.post("/admin/helpdesk/ticket/", {"action": "start_rule", "_selected_action": [ours.pk]})
    assert "no rule" in page.content.decode()
