"""Sets fields of the record."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from action_doors import action, do, problems
from factories import LeadFactory, TaskFactory

from northwind.crm.models import Lead
from northwind.helpdesk.models import Task, Ticket
from tenants.context import acting_for
from tenants.models import Tenant

TICKET, TASK, LEAD = "helpdesk.ticket", "helpdesk.task", "crm.lead"


@pytest.fixture
def task(tenant: Tenant) -> Task:
    with acting_for(tenant.pk):
        return TaskFactory(tenant=tenant, due_on=date(2026, 1, 1))


@pytest.fixture
def lead(tenant: Tenant) -> Lead:
    with acting_for(tenant.pk):
        return LeadFactory(tenant=tenant)


def test_a_field_gets_a_value(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do("set_fields", ticket, tenant, fields=[{"field": "status", "value": "open"}])
    assert (outcome.state, outcome.output) == ("done", {"changed": {"status": ["new", "open"]}})
    assert ticket.status == "open"


@pytest.mark.case("L13")
def test_a_value_that_is_there_already_is_no_change(ticket: Ticket, tenant: Tenant) -> None:
    outcome = do("set_fields", ticket, tenant, fields=[{"field": "status", "value": "new"}])
    assert (outcome.state, outcome.note, outcome.output) == ("done", "no change", {"changed": {}})


def test_only_the_named_columns_are_written(ticket: Ticket, tenant: Tenant) -> None:
    with acting_for(tenant.pk):
        Ticket.objects.filter(pk=ticket.pk).update(subject="Edited by a person")
    do("set_fields", ticket, tenant, fields=[{"field": "priority", "value": "urgent"}])
    assert (ticket.subject, ticket.priority) == ("Edited by a person", "urgent")


def test_a_date_is_counted_from_now_by_the_tenants_calendar(task: Task, tenant: Tenant) -> None:
    late = datetime(2026, 3, 26, 23, 30, tzinfo=UTC)  # the 27th in Berlin
    do("set_fields", task, tenant, now=late, fields=[{"field": "due_on", "how": "from_now", "span": "P3D"}])
    assert task.due_on == date(2026, 3, 30)


def test_a_moment_is_counted_over_the_change_of_clocks(lead: Lead, tenant: Tenant) -> None:
    before = datetime(2026, 3, 28, 11, 0, tzinfo=UTC)  # noon in Berlin; the clocks change in the night
    change = {"field": "last_contacted_at", "how": "from_now", "span": "P1D"}
    do("set_fields", lead, tenant, now=before, fields=[change])
    assert lead.last_contacted_at == datetime(2026, 3, 29, 10, 0, tzinfo=UTC)
    do("set_fields", lead, tenant, now=before, fields=[change | {"span": "PT24H"}])
    assert lead.last_contacted_at == datetime(2026, 3, 29, 11, 0, tzinfo=UTC)


def test_a_field_copies_another(ticket: Ticket, tenant: Tenant) -> None:
    do("set_fields", ticket, tenant, fields=[{"field": "subject", "how": "copy", "copy_of": "customer.email"}])
    assert ticket.subject == "ana@example.com"


def test_a_field_is_emptied(task: Task, tenant: Tenant) -> None:
    do("set_fields", task, tenant, fields=[{"field": "due_on", "how": "empty"}])
    assert task.due_on is None


@pytest.mark.parametrize(
    ("field", "value", "holds"),
    [
        ("value", "12.50", "12.50"),
        ("value", 7, "7.00"),
        ("email_opt_out", "true", "True"),
        ("tags", "b, a", "['a', 'b']"),
        ("tags", ["x"], "['x']"),
        ("last_contacted_at", "2026-07-01T09:00", "2026-07-01 07:00:00+00:00"),
        ("last_contacted_at", "2026-07-01T09:00:00+00:00", "2026-07-01 09:00:00+00:00"),
        ("last_contacted_at", "", "None"),
    ],
)
def test_texts_from_templates_are_read_as_the_fields_type(
    lead: Lead, tenant: Tenant, field: str, value: Any, holds: str
) -> None:
    assert do("set_fields", lead, tenant, fields=[{"field": field, "value": value}]).state == "done"
    assert str(getattr(lead, field)) == holds


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "sold"),
        ("status", ""),
        ("priority", 5),
        ("assignee", "somebody"),
        ("subject", "x" * 201),
        ("nothing", "x"),
    ],
)
def test_a_value_that_does_not_fit_is_rejected_and_nothing_is_written(
    ticket: Ticket, tenant: Tenant, field: str, value: Any
) -> None:
    changes = [{"field": "priority", "value": "urgent"}, {"field": field, "value": value}]
    outcome = do("set_fields", ticket, tenant, fields=changes)
    assert outcome.state == "rejected"
    assert outcome.error
    assert ticket.priority == "normal"


@pytest.mark.parametrize(
    ("still", "state"), [("new", "done"), ("open", "skipped"), ("sold", "skipped"), (["new"], "skipped")]
)
def test_with_only_if_still_all_is_written_or_nothing(ticket: Ticket, tenant: Tenant, still: Any, state: str) -> None:
    changes = [{"field": "priority", "value": "urgent"}, {"field": "status", "value": "open", "only_if_still": still}]
    outcome = do("set_fields", ticket, tenant, fields=changes)
    assert (outcome.state, outcome.reason) == (state, "not_matched" if state == "skipped" else "")
    assert (ticket.priority, ticket.status) == (("urgent", "open") if state == "done" else ("normal", "new"))


def test_only_if_still_empty_asks_for_an_empty_field(task: Task, tenant: Tenant) -> None:
    change = {"field": "due_on", "value": "2026-05-05", "only_if_still": ""}
    assert do("set_fields", task, tenant, fields=[change]).state == "skipped"
    do("set_fields", task, tenant, fields=[{"field": "due_on", "how": "empty"}])
    assert do("set_fields", task, tenant, fields=[change]).state == "done"


def test_what_can_not_be_set_is_refused_when_the_rule_is_saved() -> None:
    assert problems("set_fields", TICKET, fields=[{"field": "status", "value": "sold"}]) == ["/fields/0/value"]
    assert problems("set_fields", TICKET, fields=[{"field": "status", "value": "{{ event.x }}"}]) == []
    assert problems("set_fields", TICKET, fields=[{"field": "status", "how": "from_now", "span": "P1D"}]) == [
        "/fields/0/how"
    ]
    assert problems("set_fields", TASK, fields=[{"field": "due_on", "how": "from_now", "span": "3 days"}]) == [
        "/fields/0/span"
    ]
    assert problems("set_fields", TASK, fields=[{"field": "due_on", "how": "from_now"}]) == ["/fields/0/span"]
    assert problems("set_fields", TASK, fields=[{"field": "due_on", "how": "copy"}]) == ["/fields/0/copy_of"]
    assert problems("set_fields", TASK, fields=[{"field": "due_on", "how": "copy", "copy_of": "title"}]) == [
        "/fields/0/copy_of"
    ]
    assert problems("set_fields", TICKET, fields=[{"field": "status", "how": "empty"}]) == ["/fields/0/how"]
    twice = [{"field": "status", "value": "open"}, {"field": "status", "value": "new"}]
    assert problems("set_fields", TICKET, fields=twice) == ["/fields/1/field"]


def test_it_says_what_it_writes_and_reads_as_a_sentence() -> None:
    kind = action("set_fields")
    fields = [
        {"field": "status", "value": "open"},
        {"field": "subject", "how": "copy", "copy_of": "customer.name"},
        {"field": "due_on", "how": "from_now", "span": "P3D"},
        {"field": "assignee", "how": "empty"},
    ]
    params = kind.Params.model_validate({"fields": fields})
    assert kind.writes(params) == {"status", "subject", "due_on", "assignee"}
    assert kind.sentence(params) == (
        "set status to “open”, subject to the value of customer.name, due_on to P3D from now, assignee to empty"
    )
