"""Whatever is done to records by whichever door, their events replayed over what was there give what is there."""

from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automation.catalog import registry
from automation.engine.capture import read_records
from automation.models import Event
from northwind.crm.models import Company, Lead
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import acting_for
from tenants.models import Membership, Tenant
from tests.factories import MembershipFactory, TenantFactory

pytestmark = pytest.mark.django_db(transaction=True)

STATUS = st.sampled_from(["new", "open", "pending", "solved"])
PRIORITY = st.sampled_from(["low", "normal", "high", "urgent"])
TAGS = st.lists(st.sampled_from(["a", "b", "vip"]), max_size=3)
WHICH = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), STATUS, TAGS),
    st.tuples(st.just("bulk_create"), st.integers(1, 3)),
    st.tuples(st.just("save"), WHICH, STATUS, PRIORITY),
    st.tuples(st.just("stale_save"), WHICH, PRIORITY),
    st.tuples(st.just("save_named"), WHICH, TAGS),
    st.tuples(st.just("update"), STATUS, PRIORITY),
    st.tuples(st.just("bulk_update"), STATUS),
    st.tuples(st.just("follow"), WHICH, st.lists(st.integers(0, 2), max_size=3)),
    st.tuples(st.just("unfollow"), WHICH, st.integers(0, 2)),
    st.tuples(st.just("comment"), WHICH),
    st.tuples(
        st.just("uncomment"),
    ),
    st.tuples(st.just("delete"), WHICH),
    st.tuples(st.just("delete_some"), STATUS),
    st.tuples(st.just("lead"), st.booleans()),
    st.tuples(
        st.just("drop_company"),
    ),
)
BLOCK = st.recursive(
    OPERATIONS,
    lambda inner: st.tuples(st.just("atomic"), st.booleans(), st.lists(inner, min_size=1, max_size=6)),
    max_leaves=12,
)


class Undo(Exception):
    pass


class World:
    """A tenant in which operations are carried out; it remembers copies of tickets that grow old."""

    def __init__(self, members: list[Membership]) -> None:
        self.members = members
        self.old: list[Ticket] = []

    def run(self, operation: tuple[Any, ...]) -> None:
        name, *arguments = operation
        getattr(self, name)(*arguments)

    def ticket(self, which: int) -> Ticket | None:
        found = list(Ticket.objects.order_by("id"))
        return found[which % len(found)] if found else None

    def atomic(self, is_kept: bool, operations: list[tuple[Any, ...]]) -> None:
        with suppress(Undo), transaction.atomic():
            for operation in operations:
                self.run(operation)
            if not is_kept:
                raise Undo

    def create(self, status: str, tags: list[str]) -> None:
        self.old.append(Ticket.objects.create(subject="made", status=status, tags=tags))

    def bulk_create(self, count: int) -> None:
        Ticket.objects.bulk_create([Ticket(subject=f"bulk {n}") for n in range(count)])

    def save(self, which: int, status: str, priority: str) -> None:
        if ticket := self.ticket(which):
            ticket.status, ticket.priority = status, priority
            ticket.save()
            self.old.append(ticket)

    def stale_save(self, which: int, priority: str) -> None:
        if self.old:
            ticket = self.old[which % len(self.old)]
            ticket.priority = priority
            if ticket.pk and Ticket.objects.filter(pk=ticket.pk).exists():
                ticket._state.adding = False
                ticket.save()

    def save_named(self, which: int, tags: list[str]) -> None:
        if ticket := self.ticket(which):
            ticket.tags, ticket.subject = tags, "not written"
            ticket.save(update_fields=["tags"])

    def update(self, status: str, priority: str) -> None:
        Ticket.objects.filter(status=status).update(priority=priority)

    def bulk_update(self, status: str) -> None:
        tickets = list(Ticket.objects.all())
        for ticket in tickets:
            ticket.status = status
        Ticket.objects.bulk_update(tickets, ["status"])

    def follow(self, which: int, members: list[int]) -> None:
        if ticket := self.ticket(which):
            ticket.followers.set([self.members[n] for n in members])

    def unfollow(self, which: int, member: int) -> None:
        if ticket := self.ticket(which):
            self.members[member].followed_tickets.remove(ticket)

    def comment(self, which: int) -> None:
        if ticket := self.ticket(which):
            Comment.objects.create(ticket=ticket, body="hi")

    def uncomment(self) -> None:
        Comment.objects.all().delete()

    def delete(self, which: int) -> None:
        if ticket := self.ticket(which):
            ticket.delete()

    def delete_some(self, status: str) -> None:
        Ticket.objects.filter(status=status).delete()

    def lead(self, has_company: bool) -> None:
        company = Company.objects.get_or_create(name="Umbrella")[0] if has_company else None
        Lead.objects.create(name="Lea", company=company)

    def drop_company(self) -> None:
        for company in Company.objects.all():
            company.delete()


def replayed(events: list[Event]) -> dict[tuple[str, int], dict[str, Any]]:
    """What the events say is there; each must begin where the one before it ended."""
    state: dict[tuple[str, int], dict[str, Any]] = {}
    for event in events:
        key, facts = (event.model, event.record), event.facts
        if event.change == "created":
            assert key not in state
            state[key] = dict(facts["after"])
        elif event.change == "deleted":
            last = state.pop(key)
            assert without_empty(facts["before"]) == without_empty(last)
            continue
        else:
            for path, value in facts["before"].items():
                assert state[key].get(path) in ([value] if value else [None, value, "", 0, []])
            assert facts["before"].keys() == facts["after"].keys()
            assert all(facts["before"][path] != facts["after"][path] for path in facts["after"])
            state[key] |= facts["after"]
        watched = registry.model(event.model).watched
        snapshot = {path: value for path, value in facts["snapshot"].items() if path in watched}
        assert without_empty(snapshot) == without_empty(state[key])
    return state


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in values.items() if value not in (None, "", [], 0)}


def present() -> dict[tuple[str, int], dict[str, Any]]:
    state: dict[tuple[str, int], dict[str, Any]] = {}
    for entry in registry.models.values():
        ids = list(entry.model._default_manager.values_list("pk", flat=True))
        for pk, values in read_records(entry, ids, lock=False).items():
            state[entry.name, pk] = {path: values[path] for path in entry.watched}
    return state


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations=st.lists(BLOCK, min_size=1, max_size=10))
def test_events_replayed_give_the_final_state(operations):
    tenant: Tenant = TenantFactory()
    with acting_for(tenant.pk):
        world = World([MembershipFactory() for _ in range(3)])
        for operation in operations:
            world.run(operation)
        events = list(Event.objects.order_by("id"))
        left = {key: without_empty(values) for key, values in replayed(events).items()}
        assert left == {key: without_empty(values) for key, values in present().items()}


def test_a_save_of_a_record_that_is_gone_leaves_no_event():
    tenant = TenantFactory()
    with acting_for(tenant.pk):
        ticket = Ticket.objects.create(subject="x")
        old = Ticket.objects.get()
        ticket.delete()
        count = Event.objects.count()
        with pytest.raises(DatabaseError):
            old.save()
        assert Event.objects.count() == count
