"""What two writers, or a killed one, leave behind: row and event both or neither, and ids in the order of commits."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction

from automation.models import Event
from automation.store.events import unmatched
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import acting_for, every_tenant
from tenants.models import Tenant
from tests.factories import CommentFactory, MembershipFactory, TenantFactory, TicketFactory

pytestmark = pytest.mark.django_db(transaction=True)
WAIT = 30


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk):
        yield tenant


class Writer(threading.Thread):
    """A second connection that writes in a transaction of its own; what it raises is raised again by `finish`."""

    def __init__(self, tenant_id: int, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.tenant_id, self.work, self.error = tenant_id, work, None
        self.start()

    def run(self) -> None:
        try:
            with acting_for(self.tenant_id):
                self.work()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def finish(self) -> None:
        self.join(WAIT)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


def wait_until_somebody_waits_for_us() -> None:
    with connection.cursor() as cursor:
        found = 0
        while not found:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            found = cursor.fetchone()[0]


@pytest.mark.fault(27)
def test_a_slow_transaction_with_a_lower_id_is_still_found_after_a_faster_one(acme):
    slow, fast = TicketFactory(), TicketFactory()
    Event.objects.update(matched_at="2024-01-01T00:00Z")
    written, may_commit = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic():
            Ticket.objects.filter(pk=slow.pk).update(priority="high")
            written.set()
            assert may_commit.wait(WAIT)

    writer = Writer(acme.pk, work)
    assert written.wait(WAIT)
    Ticket.objects.filter(pk=fast.pk).update(priority="high")
    found = unmatched(acme.pk, 10)
    assert [event.record for event in found] == [fast.pk]
    Event.objects.filter(pk=found[0].id).update(matched_at="2024-01-01T00:00Z")
    may_commit.set()
    writer.finish()
    later = unmatched(acme.pk, 10)
    assert [event.record for event in later] == [slow.pk]
    assert later[0].id < found[0].id


@pytest.mark.parametrize("path", ["save", "update", "bulk_update", "comment", "follower", "delete"])
def test_per_record_the_order_of_ids_is_the_order_of_commits_and_each_sees_what_the_one_before_left(acme, path):
    ticket, member = TicketFactory(priority="low", status="new"), MembershipFactory()
    mark = Event.objects.latest("id").pk
    stale = Ticket.objects.get()
    stale.priority = "urgent"

    def work() -> None:
        {
            "save": lambda: stale.save(update_fields=["priority"]),
            "update": lambda: Ticket.objects.update(priority="urgent"),
            "bulk_update": lambda: Ticket.objects.bulk_update([stale], ["priority"]),
            "comment": lambda: CommentFactory(ticket=ticket),
            "follower": lambda: ticket.followers.add(member),
            "delete": lambda: Ticket.objects.all().delete(),
        }[path]()

    with transaction.atomic():
        Ticket.objects.update(priority="high", status="open")
        CommentFactory(ticket=ticket)
        writer = Writer(acme.pk, work)
        wait_until_somebody_waits_for_us()
    writer.finish()
    first, second = Event.objects.filter(pk__gt=mark).order_by("pk")
    assert first.facts["after"] == {"priority": "high", "status": "open", "comments": 1}
    if path == "comment":
        assert (second.facts["before"], second.facts["after"]) == ({"comments": 1}, {"comments": 2})
    elif path == "follower":
        assert second.facts["after"] == {"followers": [member.pk]}
    elif path == "delete":
        assert (second.change, second.facts["before"]["comments"]) == ("deleted", 1)
    else:
        assert (second.facts["before"], second.facts["after"]) == ({"priority": "high"}, {"priority": "urgent"})
    snapshot = second.facts["snapshot"]
    assert (snapshot["status"], snapshot["comments"]) == ("open", 2 if path == "comment" else 1)


def test_a_row_that_has_stopped_to_match_while_the_update_waited_is_left_alone(acme):
    TicketFactory(status="new")
    mark = Event.objects.latest("id").pk
    counts: list[int] = []
    with transaction.atomic():
        Ticket.objects.update(status="closed")
        writer = Writer(acme.pk, lambda: counts.append(Ticket.objects.filter(status="new").update(priority="urgent")))
        wait_until_somebody_waits_for_us()
    writer.finish()
    assert counts == [0]
    assert [event.facts["after"] for event in Event.objects.filter(pk__gt=mark)] == [{"status": "closed"}]


def test_two_that_write_the_same_records_in_bulk_do_not_deadlock(acme):
    tickets = Ticket.objects.bulk_create([Ticket(subject=str(n)) for n in range(40)])
    ids = [ticket.pk for ticket in tickets]
    barrier = threading.Barrier(2)

    def comments() -> None:
        barrier.wait(WAIT)
        for _ in range(5):
            Comment.objects.bulk_create([Comment(ticket_id=pk, body="x") for pk in reversed(ids)])

    def updates() -> None:
        barrier.wait(WAIT)
        for priority in ["low", "high"] * 3:
            Ticket.objects.filter(pk__in=ids).order_by("-pk").update(priority=priority)

    for writer in [Writer(acme.pk, comments), Writer(acme.pk, updates)]:
        writer.finish()
    assert Ticket.objects.filter(priority="high").count() == 40
    assert Comment.objects.count() == 200


KILLED = """
import django
django.setup()
from northwind.helpdesk.models import Ticket
from tenants.context import acting_for
with acting_for({tenant}):
    ticket = Ticket.objects.get()
    ticket.priority = "urgent"
    ticket.save()
"""


@pytest.mark.fault(25)
@pytest.mark.parametrize(("point", "is_written"), [("capture.row_written", False), ("capture.committed", True)])
def test_a_save_in_autocommit_that_is_killed_leaves_row_and_event_both_or_neither(
    acme, database_url, point, is_written
):
    ticket = TicketFactory(priority="low")
    mark = Event.objects.latest("id").pk
    program = subprocess.run(
        [sys.executable, "-c", KILLED.format(tenant=acme.pk)],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "northwind.settings",
            "AUTOMATION_FAIL": f"{point}:kill",
            "AUTOMATION_TESTS": "1",
            "DATABASE_URL": database_url,
        },
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert program.returncode == -signal.SIGKILL
    ticket.refresh_from_db()
    assert ticket.priority == ("urgent" if is_written else "low")
    with every_tenant():
        assert Event.objects.filter(pk__gt=mark).count() == int(is_written)
