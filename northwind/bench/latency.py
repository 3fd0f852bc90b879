"""How long an idle product takes from the commit of a change to the start of the run's first step."""

import random
import time
from datetime import datetime

from django.db import connection, transaction

from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured, percentile
from northwind.bench.tenants import PERSON, live_runs, make_tenants, unmatched
from northwind.helpdesk.models import Ticket
from tenants.context import acting_for

CHANGES = 200
PAUSE = (0.1, 0.4)  # seconds between two changes, drawn so that none keeps step with the pumps
PRIORITIES = ("normal", "high")

_STARTS = """
SELECT e.record, (SELECT min(s.started_at) FROM automation_stepexecution s WHERE s.run_id = r.id)
  FROM automation_run r JOIN automation_event e ON e.id = r.event_id
 WHERE r.tenant_id = %s AND e.cause_run_id IS NULL ORDER BY r.id
"""


def measure(place: Place) -> Measured:
    """One tenant, one change at a time."""
    changes = place.size(CHANGES, least=5)
    tenant_id = make_tenants(1, "idle", tickets=changes, rules=[definitions.small()])[0]
    place.start_workers()
    place.until(lambda: not unmatched([tenant_id]), about="the new tickets to be matched")
    place.tell(f"{changes} changes, one at a time")
    committed = _change_all(place, tenant_id)
    place.until(lambda: not unmatched([tenant_id]) and not live_runs([tenant_id]), about="the runs")
    with connection.cursor() as cursor:
        cursor.execute(_STARTS, [tenant_id])
        waits = [(started - committed[record]).total_seconds() * 1000 for record, started in cursor.fetchall()]
    p50, p99 = percentile(waits, 50), percentile(waits, 99)
    figures = {"p50_ms": p50, "p95_ms": percentile(waits, 95), "p99_ms": p99, "max_ms": max(waits), "runs": len(waits)}
    return Measured(figures, bars=[Bar("p50, ms", p50, 100, 15), Bar("p99, ms", p99, 500, 50)])


def _change_all(place: Place, tenant_id: int) -> dict[int, datetime]:
    """Changes one ticket after the other; by ticket, the database's time as the last thing before its commit."""
    rng, committed = random.Random(1), {}  # noqa: S311 repeatable
    with acting_for(tenant_id, PERSON):
        for ticket in Ticket.objects.order_by("id"):
            pause = time.monotonic() + rng.uniform(*PAUSE)
            place.until(lambda ends_at=pause: time.monotonic() >= ends_at, about="a pause")  # type: ignore[misc]
            ticket.priority = "high"
            with transaction.atomic():
                ticket.save(update_fields=["priority"])
                with connection.cursor() as cursor:
                    cursor.execute("SELECT automation_now()")
                    committed[ticket.pk] = cursor.fetchone()[0]
    return committed
