"""Makes the experiment's tenants: Acme with rules that loop and page, Contoso that imports, and many small others."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection, transaction

from automation.extend import importing
from automation.models import Connection, Lane
from northwind.helpdesk.models import Ticket
from northwind.seed.files import rules_in
from northwind.seed.publish import publish
from tenants.context import Actor, acting_for
from tenants.models import Membership, Tenant

RULES = Path(__file__).resolve().parent / "rules"
URGENT = 20
CHUNK = 100  # tickets of an import in one transaction
# A cap that nothing reaches: what a queue without a limit per tenant has.
NO_CAP = 1_000_000

_FIRST_COME = """
CREATE OR REPLACE FUNCTION automation_lane_of(p_tenant bigint) RETURNS bigint LANGUAGE sql STABLE AS
  'SELECT min(x.id) FROM automation_lane x';
"""


@dataclass(slots=True)
class World:
    """Who is there: ids of tenants and tickets, and Ana, who makes the changes at Acme."""

    acme: int
    contoso: int
    others: list[int]
    flipped: int
    urgent: list[int]
    ana: Actor
    imported: list[int] = field(default_factory=list)

    def change_one(self) -> int:
        """Ana opens one ticket; answers the event that all that follows goes back to."""
        with acting_for(self.acme, self.ana):
            ticket = Ticket.objects.get(pk=self.flipped)
            ticket.status = "open"
            ticket.save(update_fields=["status"])
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT max(id) FROM automation_event WHERE tenant_id = %s AND record = %s AND source = 'person'",
                [self.acme, self.flipped],
            )
            return int(cursor.fetchone()[0])

    def make_urgent(self, ticket_id: int) -> None:
        """One ticket becomes urgent."""
        with acting_for(self.acme, self.ana):
            ticket = Ticket.objects.get(pk=ticket_id)
            ticket.priority = "urgent"
            ticket.save(update_fields=["priority"])

    def import_some(self, numbers: Iterable[int]) -> None:
        """A part of Contoso's import, in one transaction."""
        rows = [Ticket(subject=f"Imported {number}", channel="import") for number in numbers]
        with acting_for(self.contoso), importing("old-system"):
            self.imported += [ticket.pk for ticket in Ticket.objects.bulk_create(rows)]


def make_world(tenants: int, *, pager: str, inventory: str) -> World:
    """`tenants` of them, Acme and Contoso included; the addresses are those of the receivers."""
    acme, contoso = _tenant("Acme Retail", "acme"), _tenant("Contoso", "contoso")
    with acting_for(acme):
        user = User.objects.create(username="ana@acme", first_name="Ana", email="ana@acme.example")
        Membership.objects.create(user=user, role="admin")
        _connection("pager", "pager", f"{pager}/v2/enqueue")
        _publish("acme")
        tickets = [_ticket(f"Ticket {number}") for number in range(URGENT + 1)]
    with acting_for(contoso):
        _connection("inventory", "webhook", f"{inventory}/inventory")
        _publish("contoso")
    others = [_small(number) for number in range(1, tenants - 1)]
    return World(
        acme=acme,
        contoso=contoso,
        others=others,
        flipped=tickets[0],
        urgent=tickets[1:],
        ana=Actor("person", user.pk, "Ana"),
    )


def share_one_lane() -> None:
    """Let all tenants use one lane without a cap, served as it comes: the queue that most products start with."""
    lane = Lane.objects.earliest("id")
    Lane.objects.filter(pk=lane.pk).update(max_running=NO_CAP)
    with connection.cursor() as cursor:
        cursor.execute(_FIRST_COME)


def move_to_pool(tenant_id: int, pool: str) -> None:
    """Let a tenant's work be done by the workers of a pool of its own."""
    Lane.objects.filter(tenant_id=tenant_id).update(pool=pool)


def _small(number: int) -> int:
    tenant_id = _tenant(f"Tenant {number:02}", f"tenant-{number:02}")
    with acting_for(tenant_id):
        _publish("other")
        _ticket("The one that changes")
    return tenant_id


def _tenant(name: str, slug: str) -> int:
    return Tenant.objects.create(name=name, slug=slug).pk


def _publish(folder: str) -> None:
    with transaction.atomic():
        for rule in rules_in(RULES / folder):
            publish(rule["name"], rule["definition"])


def _ticket(subject: str) -> int:
    return int(Ticket.objects.create(subject=subject).pk)


def _connection(name: str, kind: str, endpoint: str) -> None:
    connection = Connection(name=name, kind=kind, endpoint=endpoint)
    connection.set_secret(f"{name}-of-the-lab")
    connection.save()
