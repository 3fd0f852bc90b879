"""Makes the tenants of a bench with their rules and tickets, holds their work back, and lets all of it go at once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from automation.engine.arming import arm
from automation.models import Lane, Limits
from northwind.helpdesk.models import Ticket
from northwind.seed.publish import publish
from tenants.context import Actor, acting_for
from tenants.models import Tenant

PERSON = Actor("person", None, "Somebody")  # whose changes no guard counts
RULES = 100_000


def make_tenants(count: int, prefix: str, *, tickets: int, rules: Sequence[Mapping[str, Any]]) -> list[int]:
    """So many tenants, each with tickets and these rules; the events of their making are there to be matched."""
    found = []
    for number in range(count):
        with transaction.atomic():
            tenant = Tenant.objects.create(name=f"{prefix} {number}", slug=f"{prefix}-{number}")
            Limits.objects.filter(tenant=tenant).update(rules=RULES)
            with acting_for(tenant.pk, PERSON):
                add_rules(rules)
                Ticket.objects.bulk_create([Ticket(subject=f"Ticket {one}") for one in range(tickets)])
        found.append(tenant.pk)
    return found


def add_rules(rules: Sequence[Mapping[str, Any]]) -> None:
    """Publish definitions for the tenant acted for."""
    start = Limits.objects.count()
    for number, definition in enumerate(rules):
        publish(f"Rule {start}.{number}", definition)


@contextmanager
def held(tenants: Sequence[int]) -> Iterator[None]:
    """Inside, new events of these tenants wait; nothing is armed for them."""
    Lane.objects.filter(tenant_id__in=tenants).update(hold_new=True)
    yield
    Lane.objects.filter(tenant_id__in=tenants).update(hold_new=False)


def release(tenants: Sequence[int]) -> datetime:
    """Arm each tenant's matcher; answers the database's time just before."""
    begun = now()
    for tenant_id in tenants:
        arm(tenant_id)
    return begun


def change_all(tenant_id: int, **values: Any) -> None:
    """One event for each of the tenant's tickets, in one transaction."""
    with acting_for(tenant_id, PERSON):
        Ticket.objects.update(**values)


def now() -> datetime:
    """The database's time."""
    moment: datetime = value("SELECT automation_now()")
    return moment


def unmatched(tenants: Sequence[int]) -> int:
    """How many of their events no matcher has seen."""
    return int(value("SELECT count(*) FROM automation_event WHERE tenant_id = ANY(%s) AND matched_at IS NULL", tenants))


def live_runs(tenants: Sequence[int]) -> int:
    """How many of their runs have not ended."""
    sql = "SELECT count(*) FROM automation_run WHERE tenant_id = ANY(%s) AND ended_at IS NULL"
    return int(value(sql, tenants))


def value(sql: str, *values: Any) -> Any:
    """The one value that a statement answers."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(values))
        return cursor.fetchone()[0]


def column(sql: str, *values: Any) -> list[Any]:
    """The values of the one column that a statement answers."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(values))
        return [row[0] for row in cursor.fetchall()]
