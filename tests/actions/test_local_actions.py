"""Tags, notes, assignment and new records."""

from datetime import timedelta
from typing import Any

import pytest
from action_doors import NOW, do, problems
from factories import GroupFactory, MembershipFactory, TicketFactory

from northwind.helpdesk.models import Comment, Task, Ticket
from tenants.context import acting_for
from tenants.models import Group, GroupMember, Membership, Tenant

TICKET, COMPANY, LEAD = "helpdesk.ticket", "crm.company", "crm.lead"


@pytest.mark.case("O01")
def test_tags_are_added_to_what_is_there_now(ticket: Ticket, tenant: Tenant) -> None:
    with acting_for(tenant.pk):
        Ticket.objects.filter(pk=ticket.pk).update(tags=["by a person", "old"])
    outcome = do("add_tags", ticket, tenant, tags=["vip", " old ", "two  words"])
    assert outcome.output == {"added": ["two words", "vip"]}
    assert ticket.tags == ["by a person", "old", "two words", "vip"]


def test_tags_are_removed_and_others_stay(ticket: Ticket, tenant: Tenant) -> None:
    do("add_tags", ticket, tenant, tags=["vip", "late"])
    outcome = do("remove_tags", ticket, tenant, tags=["old", "late", "never there"])
    assert outcome.output == {"removed": ["late", "old"]}
    assert ticket.tags == ["vip"]


@pytest.mark.case("L13")
@pytest.mark.parametrize(("name", "tags"), [("add_tags", ["old"]), ("remove_tags", ["vip"])])
def test_tags_that_change_nothing_are_no_change(ticket: Ticket, tenant: Tenant, name: str, tags: list[str]) -> None:
    assert do(name, ticket, tenant, tags=tags).note == "no change"


@pytest.mark.parametrize("name", ["add_tags", "remove_tags"])
def test_tags_need_records_that_have_them(name: str) -> None:
    assert problems(name, COMPANY, tags=["a"]) == ["/tags"]
    assert problems(name, TICKET, tags=["fine", "x" * 41, "  "]) == ["/tags/1", "/tags/2"]
    assert problems(name, LEAD, tags=["fine"]) == []


def test_a_note_stands_where_the_host_keeps_notes(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do("add_note", ticket, tenant, text="<b>Call back</b>")
    with acting_for(tenant.pk):
        comment = Comment.objects.get(pk=outcome.output["note"])
    assert (comment.ticket_id, comment.body, comment.is_public) == (ticket.pk, "<b>Call back</b>", False)


def test_an_empty_note_is_not_written(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do("add_note", ticket, tenant, text="  \n")
    assert (outcome.state, bool(outcome.note)) == ("done", True)
    with acting_for(tenant.pk):
        assert not Comment.objects.exists()


def test_notes_need_records_that_have_them() -> None:
    assert problems("add_note", COMPANY, text="x") == ["/text"]
    assert problems("add_note", TICKET, text=" ") == ["/text"]
    assert problems("add_note", TICKET, text="x") == []


@pytest.fixture
def team(tenant: Tenant) -> list[Membership]:
    """Three members, the first two of the group Sales."""
    with acting_for(tenant.pk):
        members = [MembershipFactory(tenant=tenant, role="agent") for _ in range(3)]
        sales = GroupFactory(tenant=tenant, name="Sales")
        for member in members[:2]:
            GroupMember(tenant=tenant, group=sales, member=member).save()
    return members


def give(tenant: Tenant, member: Membership, *, hours_ago: int, status: str = "open") -> None:
    """Assign an earlier ticket to a member, so many hours ago."""
    with acting_for(tenant.pk):
        given = TicketFactory(tenant=tenant, assignee=member, status=status)
        Ticket.objects.filter(pk=given.pk).update(assigned_at=NOW - timedelta(hours=hours_ago))


def test_a_person_gets_the_ticket(ticket: Ticket, tenant: Tenant, team: list[Membership]) -> None:
    assert do("assign", ticket, tenant, to="person", person=team[2].pk).output == {"assignee": team[2].pk}
    assert ticket.assignee_id == team[2].pk
    assert do("assign", ticket, tenant, to="person", person=team[2].pk).note == "no change"


def test_a_group_gets_the_ticket(ticket: Ticket, tenant: Tenant, team: list[Membership]) -> None:
    with acting_for(tenant.pk):
        sales = Group.objects.get(name="Sales")
    assert do("assign", ticket, tenant, to="group", group="Sales").state == "done"
    assert ticket.group_id == sales.pk
    gone = do("assign", ticket, tenant, to="group", group="Marketing")
    assert (gone.state, gone.reason) == ("rejected", "no_assignee")


def test_by_turns_whoever_has_the_fewest_open_gets_it(ticket: Ticket, tenant: Tenant, team: list[Membership]) -> None:
    give(tenant, team[0], hours_ago=1)
    give(tenant, team[2], hours_ago=9)
    do("assign", ticket, tenant, to="round_robin")
    assert ticket.assignee_id == team[1].pk


def test_by_turns_only_members_of_the_group_who_are_there(
    ticket: Ticket, tenant: Tenant, team: list[Membership]
) -> None:
    team[1].is_away = True
    with acting_for(tenant.pk):
        team[1].save()
    give(tenant, team[0], hours_ago=1)
    do("assign", ticket, tenant, to="round_robin", group="Sales")
    assert ticket.assignee_id == team[0].pk
    team[0].is_active = False
    with acting_for(tenant.pk):
        team[0].save()
    nobody = do("assign", ticket, tenant, to="round_robin", group="Sales")
    assert (nobody.state, nobody.reason) == ("rejected", "no_assignee")


def test_it_may_leave_alone_what_is_assigned(ticket: Ticket, tenant: Tenant, team: list[Membership]) -> None:
    do("assign", ticket, tenant, to="person", person=team[0].pk)
    outcome = do("assign", ticket, tenant, to="round_robin", only_if_unassigned=True)
    assert outcome.state == "skipped"
    assert ticket.assignee_id == team[0].pk


def test_assigning_needs_somebody_and_a_record_that_can_be_assigned() -> None:
    assert problems("assign", TICKET, to="person") == ["/person"]
    assert problems("assign", TICKET, to="group") == ["/group"]
    assert problems("assign", LEAD, to="group", group="Sales") == ["/to"]
    assert problems("assign", COMPANY, to="round_robin") == ["/to"]
    assert problems("assign", LEAD, to="round_robin") == []


def test_a_task_is_created_for_the_ticket(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do(
        "create_record",
        ticket,
        tenant,
        model="helpdesk.task",
        values={"title": "Call back", "due_on": "2026-04-01", "is_done": False},
        link="ticket",
    )
    with acting_for(tenant.pk):
        task = Task.objects.get(pk=outcome.output["id"])
    assert (task.tenant_id, task.ticket_id, task.title, str(task.due_on)) == (
        tenant.pk,
        ticket.pk,
        "Call back",
        "2026-04-01",
    )


def test_a_ticket_is_created_from_texts(ticket: Ticket, tenant: Tenant) -> None:
    values = {"subject": "Follow-up", "customer": str(ticket.customer_id), "tags": "a, b", "channel": "api"}
    outcome = do("create_record", ticket, tenant, model="helpdesk.ticket", values=values)
    with acting_for(tenant.pk):
        created = Ticket.objects.get(pk=outcome.output["id"])
    assert (created.customer_id, created.tags, created.channel) == (ticket.customer_id, ["a", "b"], "api")


@pytest.mark.parametrize(
    "values", [{"title": "x" * 201}, {"title": "x", "due_on": "someday"}, {"title": "x", "ticket": "abc"}]
)
def test_a_record_whose_values_do_not_fit_is_not_created(
    ticket: Ticket, tenant: Tenant, values: dict[str, Any]
) -> None:
    assert do("create_record", ticket, tenant, model="helpdesk.task", values=values).state == "rejected"
    with acting_for(tenant.pk):
        assert not Task.objects.exists()


def test_a_record_of_a_kind_that_is_gone_is_a_broken_reference(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do("create_record", ticket, tenant, model="helpdesk.gone", values={})
    assert (outcome.state, outcome.reason) == ("rejected", "broken_reference")


def test_what_can_not_be_created_is_refused_when_the_rule_is_saved() -> None:
    task = {"model": "helpdesk.task"}
    assert problems("create_record", TICKET, **task, values={"title": "x"}, link="ticket") == []
    assert problems("create_record", TICKET, **task, values={"title": "{{ ticket.subject }}"}) == []
    assert problems("create_record", TICKET, **task, values={}) == ["/values"]
    assert problems("create_record", TICKET, **task, values={"title": "x", "due_on": "soon"}) == ["/values/due_on"]
    assert problems("create_record", TICKET, **task, values={"title": "x", "created_at": "2026-01-01"}) == [
        "/values/created_at"
    ]
    assert problems("create_record", TICKET, **task, values={"title": "x", "a/b": 1}) == ["/values/a~1b"]
    assert problems("create_record", TICKET, **task, values={"title": "x"}, link="assignee") == ["/link"]
    assert problems("create_record", TICKET, model="auth.user", values={}) == ["/model"]
    assert problems("create_record", TICKET, model="automation.rule", values={}) == ["/model"]
