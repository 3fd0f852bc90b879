"""Every way to change a watched record leaves exactly the event that a rule needs, in the same transaction."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from automation.core.causes import Cause
from automation.engine.sources import by_api, caused_by, importing
from automation.models import Event, Timer
from northwind.crm.models import Company, Lead
from northwind.helpdesk.models import Comment, Customer, Task, Ticket, TicketFollower
from tenants.context import Actor, acting_as, acting_for
from tenants.models import Group, Membership, Tenant
from tests.factories import (
    CommentFactory,
    CompanyFactory,
    CustomerFactory,
    GroupFactory,
    LeadFactory,
    MembershipFactory,
    TaskFactory,
    TenantFactory,
    TicketFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)

ANA = Actor("person", 7, "Ana")


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk, ANA):
        yield tenant


def events(**wanted: Any) -> list[Event]:
    return list(Event.objects.filter(**wanted).order_by("id"))


def since(mark: int) -> list[Event]:
    return events(id__gt=mark)


def last_id() -> int:
    return max([event.pk for event in events()], default=0)


def only(found: list[Event]) -> Event:
    assert len(found) == 1, [(event.model, event.record, event.change, event.facts) for event in found]
    return found[0]


@contextmanager
def taken_back() -> Iterator[None]:
    """A transaction, or a savepoint inside one, that is rolled back at its end."""
    with suppress(Undo), transaction.atomic():
        yield
        raise Undo


class Undo(Exception):
    pass


# A record of its own


def test_a_new_ticket_is_one_created_event_with_its_values_and_its_customers_plan(acme):
    customer = CustomerFactory(plan="gold")
    ticket = Ticket.objects.create(subject="Printer on fire", customer=customer, tags=["vip", "hot", "vip"])
    event = only(events(model="helpdesk.ticket"))
    assert (event.kind, event.change, event.record, event.tenant_id) == (
        "record_changed",
        "created",
        ticket.pk,
        acme.pk,
    )
    assert event.facts["before"] == {}
    assert event.facts["after"] == {
        "subject": "Printer on fire",
        "status": "new",
        "priority": "normal",
        "channel": "web",
        "customer": customer.pk,
        "tags": ["hot", "vip"],
    }
    snapshot = event.facts["snapshot"]
    assert (snapshot["customer.plan"], snapshot["status_category"], snapshot["comments"]) == ("gold", "open", 0)
    assert (event.actor, event.actor_id, event.source, event.depth, event.path) == ("Ana", 7, "person", 0, [])


def test_a_change_says_only_what_moved(acme):
    ticket = TicketFactory(priority="low")
    mark = last_id()
    ticket.priority = "urgent"
    ticket.save()
    event = only(since(mark))
    assert event.change == "updated"
    assert event.facts["before"] == {"priority": "low"}
    assert event.facts["after"] == {"priority": "urgent"}
    assert event.facts["snapshot"]["subject"] == ticket.subject


@pytest.mark.case("L13")
def test_saving_what_is_already_there_is_no_event_and_leaves_the_row_as_it_was(acme):
    lead = LeadFactory(value=Decimal("10.50"), tags=["a", "b"])
    before = Lead.objects.values().get()
    mark = last_id()
    lead.value, lead.tags = Decimal("10.5"), ["b", "a", "a"]
    lead.save()
    Lead.objects.update(value="10.500", tags=["b", "a"], status="new")
    Lead.objects.bulk_update([lead], ["value", "tags"])
    assert since(mark) == []
    assert Lead.objects.values().get() == before


def test_a_stale_copy_reports_the_committed_truth_and_not_its_memory(acme):
    ticket = TicketFactory(priority="low")
    stale = Ticket.objects.get()
    ticket.priority = "high"
    ticket.save()
    mark = last_id()
    stale.status = "open"
    stale.save()
    event = only(since(mark))
    assert event.facts["before"] == {"status": "new", "priority": "high"}
    assert event.facts["after"] == {"status": "open", "priority": "low"}


@pytest.mark.case("S05")
def test_half_filled_instances_report_only_what_they_wrote(acme):
    TicketFactory(priority="urgent", subject="Keep me")
    mark = last_id()
    partial = Ticket.objects.only("id", "status", "tenant").get()
    partial.status = "solved"
    partial.save()
    named = Ticket(pk=partial.pk, tenant=acme, status="closed")
    named.save(update_fields=["status"])
    Ticket.objects.bulk_update([Ticket(pk=partial.pk, tenant=acme, status="open")], ["status"])
    assert [(e.facts["before"], e.facts["after"]) for e in since(mark)] == [
        ({"status": "new"}, {"status": "solved"}),
        ({"status": "solved"}, {"status": "closed"}),
        ({"status": "closed"}, {"status": "open"}),
    ]
    assert Ticket.objects.get().priority == "urgent"


def test_a_record_that_was_deleted_meanwhile_is_not_made_again_by_an_old_copy(acme):
    ticket = TicketFactory()
    old = Ticket.objects.get()
    ticket.delete()
    old.status = "open"
    with pytest.raises(DatabaseError):
        old.save()
    assert not Ticket.objects.exists()


def test_a_save_by_an_old_copy_keeps_what_the_database_moved(acme):
    member = MembershipFactory()
    ticket = TicketFactory()
    old = Ticket.objects.get()
    CommentFactory(ticket=ticket)
    active = Ticket.objects.get().last_activity_at
    assert active > old.last_activity_at
    old.assignee = member
    old.save()
    now = Ticket.objects.get()
    assert now.last_activity_at == active
    assert now.assigned_at is not None


def test_expressions_are_captured_with_the_values_that_the_database_made_of_them(acme):
    from_db = LeadFactory(value=Decimal("10.00"))
    mark = last_id()
    Lead.objects.update(value=Lead.objects.filter(pk=from_db.pk).values("value")[:1])
    assert since(mark) == []
    from_db.value = F("value") + Decimal("0.505")
    from_db.save()
    assert only(since(mark)).facts["after"] == {"value": "10.51"}


@pytest.mark.case("S11")
def test_nul_and_lone_surrogates_are_cleaned_on_the_way_in(acme):
    ticket = TicketFactory(subject="a\x00b\ud800c", tags=["x\x00"])
    Ticket.objects.update(description="d\x00\udfffe")
    ticket.refresh_from_db()
    assert (ticket.subject, ticket.description, ticket.tags) == ("abc", "de", ["x"])
    Ticket.objects.bulk_create([Ticket(subject="\x00n\ud9ab")])
    ticket.subject = "f\x00"
    Ticket.objects.bulk_update([ticket], ["subject"])
    assert set(Ticket.objects.values_list("subject", flat=True)) == {"n", "f"}
    assert [e.facts["after"].get("subject") for e in events()] == ["abc", None, "n", "f"]


def test_a_long_text_is_compared_whole_and_kept_cut(acme):
    long = "é" * 5000
    ticket = TicketFactory(description=long)
    mark = last_id()
    ticket.description = long + "!"
    ticket.save()
    event = only(since(mark))
    assert event.facts["cut"] == ["description"]
    for values in (event.facts["before"], event.facts["after"], event.facts["snapshot"]):
        assert len(values["description"].encode()) <= 8192
    assert Ticket.objects.get().description == long + "!"


# Many at once


@pytest.mark.case("S04")
def test_every_bulk_path_leaves_one_event_a_record(acme):
    made = Ticket.objects.bulk_create([Ticket(subject=f"t{n}") for n in range(50)])
    assert [(e.change, e.record) for e in events()] == [("created", row.pk) for row in made]
    mark = last_id()
    assert Ticket.objects.filter(status="new").update(status="closed") == 50
    assert [(e.record, e.facts["before"], e.facts["after"]) for e in since(mark)] == [
        (row.pk, {"status": "new"}, {"status": "closed"}) for row in made
    ]
    mark = last_id()
    for row in made:
        row.priority = "high" if row.pk % 2 else "normal"
    Ticket.objects.bulk_update(made, ["priority"])
    assert [e.record for e in since(mark)] == [row.pk for row in made if row.pk % 2]
    mark = last_id()
    Ticket.objects.filter(priority="high").delete()
    gone = since(mark)
    assert {e.change for e in gone} == {"deleted"}
    assert len(gone) == 25
    assert gone[0].facts["snapshot"]["status"] == "closed"


@pytest.mark.case("H04")
@pytest.mark.parametrize("path", ["bulk_create", "update", "bulk_update", "delete", "comments", "followers"])
def test_500_rows_take_as_many_statements_as_one(acme, path, django_assert_max_num_queries):
    member, customer = MembershipFactory(), CustomerFactory()

    def statements(count: int) -> int:
        tickets = Ticket.objects.bulk_create([Ticket(subject=f"t{n}", customer=customer) for n in range(count)])
        rows = Ticket.objects.filter(pk__in=[one.pk for one in tickets])
        for one in tickets:
            one.status = "solved"
        work = {
            "bulk_create": lambda: Ticket.objects.bulk_create([Ticket(subject="n") for _ in range(count)]),
            "update": lambda: rows.update(priority="high"),
            "bulk_update": lambda: Ticket.objects.bulk_update(tickets, ["status"]),
            "delete": rows.delete,
            "comments": lambda: Comment.objects.bulk_create([Comment(ticket=one, body="hi") for one in tickets]),
            "followers": lambda: member.followed_tickets.add(*tickets),
        }[path]
        mark = last_id()
        with django_assert_max_num_queries(40) as seen:
            work()
        assert len(since(mark)) == count
        # What follows on the commit isn't the writer's: one statement, and a bell now and then.
        return [query["sql"] for query in seen.captured_queries].index("COMMIT")

    # Django itself deletes what it has loaded a hundred rows at a time.
    deletes = 500 // 100 - 1 if path == "delete" else 0
    assert statements(500) == statements(1) + deletes


def test_get_or_create_and_update_or_create_are_captured(acme):
    Ticket.objects.get_or_create(subject="one")
    Ticket.objects.get_or_create(subject="one")
    Ticket.objects.update_or_create(subject="one", defaults={"priority": "high"})
    Ticket.objects.update_or_create(subject="two", defaults={"priority": "low"})
    assert [(e.change, e.facts["after"].get("priority")) for e in events()] == [
        ("created", "normal"),
        ("updated", "high"),
        ("created", "low"),
    ]


def test_where_the_database_hides_what_it_wrote_the_write_is_refused(acme):
    with pytest.raises(ValueError, match="captured"):
        Ticket.objects.bulk_create([Ticket(subject="x")], ignore_conflicts=True)
    with pytest.raises(ValueError, match="captured"):
        Company.objects.bulk_create(
            [Company(name="x")], update_conflicts=True, unique_fields=["tenant", "name"], update_fields=["size"]
        )
    assert not Ticket.objects.exists()


# Parts and links


def test_a_comment_is_an_update_of_its_ticket(acme):
    ticket = TicketFactory()
    mark = last_id()
    comment = CommentFactory(ticket=ticket)
    event = only(since(mark))
    assert (event.model, event.record, event.change) == ("helpdesk.ticket", ticket.pk, "updated")
    assert (event.facts["before"], event.facts["after"]) == ({"comments": 0}, {"comments": 1})
    assert event.facts["snapshot"]["comments"] == 1
    mark = last_id()
    comment.body = "Or replaced it?"
    comment.save()
    assert since(mark) == []
    comment.delete()
    assert only(since(mark)).facts["after"] == {"comments": 0}


def test_a_comment_that_moves_is_an_update_of_both_tickets(acme):
    one, other = TicketFactory(), TicketFactory()
    comment = CommentFactory(ticket=one)
    mark = last_id()
    comment.ticket = other
    comment.save()
    assert [(e.record, e.facts["after"]) for e in since(mark)] == [
        (one.pk, {"comments": 0}),
        (other.pk, {"comments": 1}),
    ]
    mark = last_id()
    Comment.objects.update(ticket=one)
    assert [(e.record, e.facts["after"]) for e in since(mark)] == [
        (one.pk, {"comments": 1}),
        (other.pk, {"comments": 0}),
    ]


def test_followers_are_captured_by_whichever_door_they_come(acme):
    ticket = TicketFactory()
    ana, ben, cy = (MembershipFactory() for _ in range(3))
    mark = last_id()
    ticket.followers.add(ana, ben)
    ticket.followers.add(ana)
    ticket.followers.remove(ben)
    cy.followed_tickets.add(ticket)
    ticket.followers.set([ben])
    TicketFollower.objects.create(ticket=ticket, member=cy)
    TicketFollower.objects.filter(member=cy).update(member=ana)
    ticket.followers.clear()
    steps = [e.facts["after"]["followers"] for e in since(mark)]
    assert steps == [
        sorted([ana.pk, ben.pk]),
        [ana.pk],
        [ana.pk, cy.pk],
        [ben.pk],
        [ben.pk, cy.pk],
        sorted([ana.pk, ben.pk]),
        [],
    ]


@pytest.mark.case("D05")
@pytest.mark.case("S13")
def test_fields_tags_and_followers_of_one_request_are_one_event(acme):
    ticket, member = TicketFactory(tags=["old"]), MembershipFactory()
    mark = last_id()
    with transaction.atomic():
        ticket.subject = "Changed"
        ticket.save()
        ticket.tags = ["vip"]
        ticket.save(update_fields=["tags"])
        ticket.followers.add(member)
        CommentFactory(ticket=ticket)
    event = only(since(mark))
    assert event.facts["before"]["tags"] == ["old"]
    assert event.facts["after"] == {"subject": "Changed", "tags": ["vip"], "followers": [member.pk], "comments": 1}
    assert event.facts["snapshot"]["followers"] == [member.pk]


# Deletions


@pytest.mark.case("X05")
def test_deleting_a_company_empties_the_company_of_its_leads_and_says_so(acme):
    company = CompanyFactory(name="Umbrella", size=80)
    leads = [LeadFactory(company=company) for _ in range(3)]
    mark, key = last_id(), company.pk
    company.delete()
    found = since(mark)
    assert [(e.model, e.change) for e in found] == [("crm.lead", "updated")] * 3 + [("crm.company", "deleted")]
    for event, lead in zip(found, leads, strict=False):
        assert event.record == lead.pk
        assert (event.facts["before"], event.facts["after"]) == ({"company": key}, {"company": None})
        assert event.facts["snapshot"]["company.name"] is None
    assert found[-1].facts["snapshot"]["name"] == "Umbrella"


def test_what_hangs_on_a_deleted_ticket_goes_with_it_and_is_captured(acme):
    ticket = TicketFactory()
    CommentFactory(ticket=ticket)
    task = TaskFactory(ticket=ticket)
    mark, key = last_id(), ticket.pk
    ticket.delete()
    assert sorted((e.model, e.record, e.change) for e in since(mark)) == [
        ("helpdesk.task", task.pk, "deleted"),
        ("helpdesk.ticket", key, "deleted"),
    ]
    gone = only(events(model="helpdesk.ticket", change="deleted"))
    assert gone.facts["snapshot"]["comments"] == 1
    assert gone.facts["after"] == {}


def test_a_member_or_group_that_goes_is_captured_although_it_is_not_watched(acme):
    member, group = MembershipFactory(), GroupFactory()
    ticket = TicketFactory(assignee=member, group=group)
    ticket.followers.add(member)
    mark, keys = last_id(), (member.pk, group.pk)
    with transaction.atomic():
        Membership.objects.get().delete()
        Group.objects.all().delete()
    event = only(since(mark))
    assert event.facts["before"] == {"assignee": keys[0], "group": keys[1], "followers": [keys[0]]}
    assert event.facts["after"] == {"assignee": None, "group": None, "followers": []}


# One transaction


def test_what_returns_to_its_first_value_is_no_change_and_what_is_left_of_nothing_is_no_event(acme):
    ticket = TicketFactory(priority="low")
    mark = last_id()
    with transaction.atomic():
        for priority, status in [("high", "open"), ("urgent", "open"), ("low", "open")]:
            ticket.priority, ticket.status = priority, status
            ticket.save()
    event = only(since(mark))
    assert (event.facts["before"], event.facts["after"]) == ({"status": "new"}, {"status": "open"})
    mark = last_id()
    with transaction.atomic():
        Ticket.objects.update(priority="high")
        Ticket.objects.update(priority="low")
    assert since(mark) == []


def test_made_and_changed_is_made_and_made_and_deleted_is_nothing(acme):
    with transaction.atomic():
        ticket = TicketFactory(priority="low", tags=["x"])
        ticket.priority, ticket.tags = "urgent", []
        ticket.save()
        TicketFactory(subject="gone").delete()
    event = only(events())
    assert event.change == "created"
    assert event.facts["before"] == {}
    assert event.facts["after"]["priority"] == "urgent"
    assert "tags" not in event.facts["after"]


def test_changed_and_deleted_is_deleted_with_the_first_values(acme):
    ticket = TicketFactory(priority="low")
    mark = last_id()
    with transaction.atomic():
        ticket.priority = "urgent"
        ticket.save()
        ticket.delete()
    event = only(since(mark))
    assert (event.change, event.facts["before"]["priority"]) == ("deleted", "low")


def test_changes_of_different_causes_never_merge(acme):
    ticket = TicketFactory()
    mark = last_id()
    one = Cause(1, 1, 11, 101, 1001, 1, ((11, f"helpdesk.ticket:{ticket.pk}"),))
    next_step = Cause(1, 1, 11, 101, 1002, 1, one.path)
    two = Cause(1, 1, 22, 102, 1003, 1, ((22, f"helpdesk.ticket:{ticket.pk}"),))
    with transaction.atomic():
        with caused_by(one, actor="First rule"):
            Ticket.objects.update(priority="high")
        with caused_by(next_step, actor="First rule"):
            Ticket.objects.update(status="open")
        with caused_by(two, actor="Second rule"):
            Ticket.objects.update(priority="urgent")
        Ticket.objects.update(subject="By hand")
    found = since(mark)
    assert [e.facts["after"] for e in found] == [
        {"priority": "high", "status": "open"},
        {"priority": "urgent"},
        {"subject": "By hand"},
    ]
    assert [(e.source, e.actor, e.cause_rule_id, e.cause_run_id, e.depth) for e in found] == [
        ("automation", "First rule", 11, 101, 1),
        ("automation", "Second rule", 22, 102, 1),
        ("person", "Ana", None, None, 0),
    ]
    assert found[0].path == [[11, f"helpdesk.ticket:{ticket.pk}"]]


def test_two_transactions_are_two_events(acme):
    ticket = TicketFactory()
    mark = last_id()
    for priority in ("high", "low"):
        with transaction.atomic():
            ticket.priority = priority
            ticket.save()
    assert len(since(mark)) == 2


@pytest.mark.fault(25)
@pytest.mark.case("S01")
def test_a_rolled_back_change_leaves_no_event_and_nothing_of_it_reaches_the_next_transaction(acme):
    ticket = TicketFactory(priority="low")
    Timer.objects.all().delete()
    mark = last_id()
    with taken_back():
        ticket.priority = "urgent"
        ticket.save()
    assert since(mark) == []
    assert not Timer.objects.exists()
    ticket.priority, ticket.status = "low", "open"
    ticket.save()
    assert only(since(mark)).facts["before"] == {"status": "new"}


@pytest.mark.fault(25)
def test_after_a_savepoint_is_rolled_back_the_later_change_alone_is_one_event(acme):
    ticket = TicketFactory(priority="low")
    mark = last_id()
    with transaction.atomic():
        with taken_back():
            Ticket.objects.update(priority="urgent")
        Ticket.objects.update(status="open")
    event = only(since(mark))
    assert (event.record, event.facts["before"], event.facts["after"]) == (
        ticket.pk,
        {"status": "new"},
        {"status": "open"},
    )


@pytest.mark.fault(25)
def test_what_a_rolled_back_savepoint_merged_is_taken_back_from_the_event(acme):
    TicketFactory(priority="low")
    mark = last_id()
    with transaction.atomic():
        Ticket.objects.update(status="open")
        with taken_back():
            Ticket.objects.update(priority="urgent", status="new")
        with transaction.atomic():
            Ticket.objects.update(subject="Kept")
    event = only(since(mark))
    assert event.facts["after"] == {"status": "open", "subject": "Kept"}


def test_in_autocommit_the_row_is_not_written_without_its_event(acme):
    ticket = TicketFactory(priority="low")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no event'; END $$;"
            "CREATE TRIGGER refuse BEFORE INSERT ON automation_event EXECUTE FUNCTION refuse()"
        )
    try:
        ticket.priority = "urgent"
        with pytest.raises(DatabaseError, match="no event"):
            ticket.save()
        with pytest.raises(DatabaseError, match="no event"):
            Ticket.objects.update(priority="high")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse() CASCADE")
    assert Ticket.objects.get().priority == "low"


@pytest.mark.case("S02")
def test_one_match_timer_is_armed_after_the_commit_and_not_before(acme):
    with transaction.atomic():
        TicketFactory()
        TicketFactory()
        assert not Timer.objects.exists()
    assert [timer.kind for timer in Timer.objects.all()] == ["match"]


# Where it comes from


def test_the_door_by_which_a_change_came_is_its_source(acme):
    customer = CustomerFactory()
    mark = last_id()
    with importing("leads-2024-05"):
        Customer.objects.update(plan="silver")
    with by_api():
        Customer.objects.update(plan="gold")
    with acting_as(Actor("api", 3, "Shop")):
        Customer.objects.update(plan="free")
    with acting_for(acme.pk, Actor("system", None, "")):
        Customer.objects.update(plan="silver")
    assert [(e.source, e.batch, e.actor, e.facts["source"]) for e in since(mark)] == [
        ("import", "leads-2024-05", "Ana", "import"),
        ("api", "", "Ana", "api"),
        ("api", "", "Shop", "api"),
        ("api", "", "", "api"),
    ]
    assert customer.pk == only(since(last_id() - 1)).record


@pytest.mark.parametrize("batch", ["", "x" * 81])
def test_a_batch_without_a_usable_name_is_refused(batch):
    with pytest.raises(ValueError, match="batch"), importing(batch):
        pass


def test_tasks_are_records_of_their_own(acme):
    task = TaskFactory()
    mark = last_id()
    Task.objects.filter(pk=task.pk).update(is_done=True)
    assert only(since(mark)).facts["after"] == {"is_done": True}
