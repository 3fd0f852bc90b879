"""Tickets from a file: each row for itself, said at its line and column where it can't be taken."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from automation.models import Event
from northwind.helpdesk.models import Customer, Ticket
from northwind.imports.columns import Column, word
from northwind.imports.models import ImportedRow, ImportJob
from northwind.imports.tickets import TICKETS
from northwind.management.commands.import_tickets import Command
from tenants.models import AuditEntry
from tests.factories import CustomerFactory, GroupFactory, MembershipFactory, TenantFactory, TicketFactory, UserFactory
from tests.imports.desk import Desk


def test_a_file_becomes_tickets_with_what_they_refer_to(desk: Desk) -> None:
    with desk.acting():
        bea = CustomerFactory(email="Bea@Example.com")
        ana = MembershipFactory(user=UserFactory(email="ana@acme.example"))
        sales = GroupFactory(name="Sales")
    path = desk.write(
        "Subject,Status,priority,customer,assignee,group,tags,created_at",
        ["Printer", "Open", "URGENT", "bea@example.com", "ANA@acme.example", "Sales", "vip; late,vip", "2024-02-03"],
        ["Screen", "", "", "", "", "", "", "2024-02-03T10:00:00+02:00"],
    )
    desk.command("tickets", path)
    assert desk.said.strip().endswith("2 rows, 2 created, 0 updated, 0 unchanged, 0 rejected.")
    with desk.acting():
        screen, printer = Ticket.objects.order_by("subject")[1], Ticket.objects.order_by("subject")[0]
        assert (printer.status, printer.priority, printer.tags) == ("open", "urgent", ["late", "vip"])
        assert (printer.customer, printer.assignee, printer.group) == (bea, ana, sales)
        assert (screen.status, screen.priority, screen.channel) == ("new", "normal", "import")
        assert screen.created_at == datetime(2024, 2, 3, 8, tzinfo=UTC)
        events = Event.objects.order_by("id")
        job = ImportJob.objects.get()
        assert [(one.source, one.batch, one.record) for one in events.filter(model="helpdesk.ticket")] == [
            ("import", job.batch, printer.pk),
            ("import", job.batch, screen.pk),
        ]
        assert (job.rows_done, job.created, job.finished_at is not None) == (2, 2, True)
        verbs = AuditEntry.objects.filter(target=f"import:{job.pk}").order_by("id").values_list("verb", flat=True)
        assert list(verbs) == ["import", "import.finished"]


def test_a_bad_row_is_told_by_line_and_column_and_the_others_are_taken(desk: Desk) -> None:
    path = desk.write(
        "subject,priority,customer,assignee",
        ["Good", "high", "", ""],
        ["Two\nlines", "loud", "nobody@example.com", ""],
        ["", "", "", ""],
        '"Short"',
        ["x" * 201, "", "", ""],
        ["Good too", "", "", ""],
    )
    refused = desk.command("tickets", path, f"--report={desk.folder}/report.csv", code=3)
    assert refused.startswith("4 rows were left out.")
    with desk.acting():
        assert {ticket.subject for ticket in Ticket.objects.all()} == {"Good", "Good too"}
    found = [(row["row"], row["line"], row["outcome"], row["column"], row["place"]) for row in desk.report()]
    assert found == [
        ("1", "2", "created", "", ""),
        ("2", "3", "rejected", "priority", "2"),
        ("2", "3", "rejected", "customer", "3"),
        ("3", "5", "rejected", "subject", "1"),
        ("4", "6", "rejected", "", "2"),
        ("5", "7", "rejected", "subject", "1"),
        ("6", "8", "created", "", ""),
    ]
    assert "Line 3, column 2 (priority): This is none of: low, normal, high, urgent." in desk.told
    assert "nobody@example.com" not in desk.told


def test_long_texts_are_kept_as_they_are_and_what_no_database_holds_is_said(desk: Desk) -> None:
    path = desk.write(
        "subject,description,group",
        [" Spaces ", "  as\n  it was\n", ""],
        ["NUL", "", "no\x00group"],
        ["NUL\x00", "", ""],
    )
    desk.command("tickets", path, f"--report={desk.folder}/report.csv", code=3)
    found = [(row["outcome"], row["column"], row["message"]) for row in desk.report()]
    said = "This holds a character that can't be stored."
    assert found == [("created", "", ""), ("rejected", "group", said), ("rejected", "subject", said)]
    with desk.acting():
        [ticket] = Ticket.objects.all()
    assert (ticket.subject, ticket.description) == ("Spaces", "  as\n  it was\n")


def test_the_rows_left_out_can_be_mended_and_imported(desk: Desk) -> None:
    path = desk.write("subject,priority", ["One", "high"], ["Two, the second", "loud"], ["Three", "low"])
    rejected = desk.folder / "rejected.csv"
    desk.command("tickets", path, f"--rejected={rejected}", code=3)
    assert rejected.read_text(encoding="utf-8-sig") == 'subject,priority\n"Two, the second",loud\n'
    rejected.write_text(rejected.read_text(encoding="utf-8-sig").replace("loud", "low"), encoding="utf-8")
    desk.command("tickets", rejected)
    with desk.acting():
        assert Ticket.objects.count() == 3


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("subject,colour", "Line 1, column 2: There is no column “colour”. There are: id, subject"),
        ("subject,Sub ject", "Line 1, column 2: The column “subject” comes twice."),
        ("priority", "Line 1: The column “subject” is missing."),
        ("subject,", "Line 1, column 2: There is no column “”."),
    ],
)
def test_a_wrong_header_is_refused_before_anything_is_written(desk: Desk, header: str, said: str) -> None:
    assert desk.command("tickets", desk.write(header, "a,b"), code=1).startswith(said)
    with desk.acting():
        assert not ImportJob.objects.exists()


def test_a_file_that_breaks_at_its_end_writes_nothing(desk: Desk) -> None:
    path = desk.write("subject", *[[f"Ticket {number}"] for number in range(300)], '"never closed')
    assert desk.command("tickets", path, code=1).startswith("Line 302: The row that begins here is broken")
    with desk.acting():
        assert not Ticket.objects.exists()


def test_records_that_exist_are_changed_where_they_really_differ(desk: Desk) -> None:
    with desk.acting():
        same, other = TicketFactory(subject="Same", priority="high"), TicketFactory(subject="Other")
        mark = Event.objects.order_by("-id").values_list("pk", flat=True)[0]
    elsewhere = TicketFactory(tenant=TenantFactory())
    path = desk.write(
        "id,subject,priority",
        [str(same.pk), "Same", "High"],
        [str(other.pk), "", "low"],
        [str(elsewhere.pk), "Mine now", ""],
        ["", "New", ""],
        ["7x", "Odd", ""],
    )
    desk.command("tickets", path, f"--report={desk.folder}/report.csv", code=3)
    assert [row["outcome"] for row in desk.report()] == ["unchanged", "updated", "rejected", "created", "rejected"]
    assert [row["message"] for row in desk.report()][2:5:2] == [
        "There is no record of this number.",
        "This isn't the number of a record.",
    ]
    with desk.acting():
        other.refresh_from_db()
        assert (other.subject, other.priority) == ("Other", "low")
        assert [event.facts["after"] for event in Event.objects.filter(pk__gt=mark, change="updated")] == [
            {"priority": "low"}
        ]


def test_customers_are_made_where_that_is_asked_for(desk: Desk) -> None:
    path = desk.write(
        "subject,customer,customer_name",
        ["A", "new@example.com", "Nora New"],
        ["B", "NEW@example.com", ""],
        ["C", "not an address", ""],
    )
    desk.command("tickets", path, "--create-missing", code=3)
    with desk.acting():
        customer = Customer.objects.get()
        assert (customer.name, customer.email) == ("Nora New", "new@example.com")
        assert set(customer.tickets.values_list("subject", flat=True)) == {"A", "B"}
        assert Event.objects.get(model="helpdesk.customer").source == "import"


def test_what_only_the_database_refuses_leaves_that_row_out_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked = (Column("priority", "priority", word), *(one for one in TICKETS.columns if one.name != "priority"))
    monkeypatch.setattr(Command, "target", replace(TICKETS, columns=unchecked))
    path = desk.write("subject,priority", ["One", "high"], ["Two", "loud"], ["Three", "low"])
    desk.command("tickets", path, f"--report={desk.folder}/report.csv", code=3)
    assert [row["outcome"] for row in desk.report()] == ["created", "rejected", "created"]
    assert desk.report()[1]["message"] == "The database refuses this row: helpdesk_ticket_priority."


def test_a_change_that_only_the_database_refuses_leaves_that_row_out_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    unchecked = (Column("priority", "priority", word), *(one for one in TICKETS.columns if one.name != "priority"))
    monkeypatch.setattr(Command, "target", replace(TICKETS, columns=unchecked))
    with desk.acting():
        one, two, three = (TicketFactory(subject=f"Ticket {number}") for number in range(3))
    rows = [[str(one.pk), "high"], [str(two.pk), "loud"], [str(three.pk), "low"], [str(two.pk), "urgent"]]
    desk.command("tickets", desk.write("id,priority", *rows), f"--report={desk.folder}/report.csv", code=3)
    assert [row["outcome"] for row in desk.report()] == ["updated", "rejected", "updated", "updated"]
    with desk.acting():
        found = list(Ticket.objects.order_by("id").values_list("priority", flat=True))
        assert found == ["high", "urgent", "low"]
        assert [event.facts["after"] for event in Event.objects.filter(change="updated").order_by("record")] == [
            {"priority": priority} for priority in found
        ]


def test_rows_about_one_record_are_taken_in_their_order(desk: Desk) -> None:
    with desk.acting():
        ticket = TicketFactory(priority="normal")
    rows = [[str(ticket.pk), word] for word in ("high", "low", "low", "urgent")]
    desk.command("tickets", desk.write("id,priority", *rows), f"--report={desk.folder}/report.csv")
    assert [row["outcome"] for row in desk.report()] == ["updated", "updated", "unchanged", "updated"]
    with desk.acting():
        ticket.refresh_from_db()
    assert ticket.priority == "urgent"


def test_a_trial_says_what_would_become_of_each_row_and_keeps_nothing(desk: Desk) -> None:
    with desk.acting():
        ticket = TicketFactory(subject="There")
        events = Event.objects.count()
    path = desk.write("id,subject,priority", [str(ticket.pk), "", "low"], ["", "New", ""], ["", "", "loud"])
    desk.command("tickets", path, "--dry-run", f"--report={desk.folder}/report.csv", code=3)
    assert [(row["outcome"], row["record"]) for row in desk.report()] == [
        ("updated", str(ticket.pk)),
        ("created", ""),
        ("rejected", ""),
    ]
    assert desk.said.startswith("Nothing is kept; it would be: 3 rows, 1 created, 1 updated")
    with desk.acting():
        assert [one.priority for one in Ticket.objects.all()] == ["normal"]
        assert (Event.objects.count(), ImportJob.objects.count(), ImportedRow.objects.count()) == (events, 0, 0)


def test_an_unknown_tenant_and_odd_arguments_are_said_in_one_line(desk: Desk) -> None:
    path = desk.write("subject", ["A"])
    assert "--delimiter" in desk.command("tickets", path, "--delimiter=ab", code=1)
    assert "1 to 80" in desk.command("tickets", path, f"--batch={'x' * 81}", code=1)
    assert "No such file" in desk.command("tickets", desk.folder / "none.csv", code=1)
    assert "can't be written" in desk.command("tickets", path, f"--report={desk.folder}", code=1)
    desk.tenant.slug = "nobody"
    assert desk.command("tickets", path, code=1) == "There is no tenant 'nobody'."
