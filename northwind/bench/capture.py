"""What a save of a watched record costs, what follows on its commit included, against one that nobody watches."""

import time
from collections.abc import Callable

from django.db import models

from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured, percentile
from northwind.bench.tenants import PERSON, add_rules, make_tenants
from northwind.helpdesk.models import Ticket
from tenants.context import acting_for
from tenants.models import TenantOwned

SAVES = 400
FEW, MANY = 10, 1000
FIRST, GOAL, FLAT = 3.0, 1.6, 1.15
PRIORITIES = ("low", "normal", "high")


class PlainTicket(TenantOwned):
    """A ticket as it would be without automation: the same table and columns, saved by Django alone."""

    subject = models.CharField(max_length=200)
    description = models.TextField()
    status = models.CharField(max_length=10)
    priority = models.CharField(max_length=10)
    channel = models.CharField(max_length=10)
    customer_id = models.BigIntegerField(null=True)
    assignee_id = models.BigIntegerField(null=True)
    group_id = models.BigIntegerField(null=True)
    tags = Ticket._meta.get_field("tags").clone()

    class Meta:
        managed = False
        app_label = "northwind"
        db_table = "helpdesk_ticket"

    def __str__(self) -> str:
        return self.subject


def measure(place: Place) -> Measured:
    """Saves of both kinds by turns, with a few rules and with many; the medians are compared."""
    saves, many = place.size(SAVES, least=10), place.size(MANY, least=FEW)
    tenant_id = make_tenants(1, "capture", tickets=1, rules=[definitions.elsewhere(one) for one in range(FEW)])[0]
    figures: dict[str, float] = {}
    for rules in (FEW, many):
        with acting_for(tenant_id, PERSON):
            if rules > FEW:
                place.tell(f"publishing {rules} rules")
                add_rules([definitions.elsewhere(one) for one in range(rules - FEW)])
            place.tell(f"{saves} saves of each kind with {rules} rules")
            plain, watched = _saves(saves)
        figures |= {f"plain_ms_{rules}_rules": plain, f"watched_ms_{rules}_rules": watched}
        figures[f"ratio_{rules}_rules"] = watched / plain
    few, lots = figures[f"ratio_{FEW}_rules"], figures[f"ratio_{many}_rules"]
    bars = [Bar(f"watched ÷ plain, {many} rules", lots, FIRST, GOAL), Bar("many rules ÷ few", lots / few, FLAT, 1.05)]
    return Measured(figures, bars=bars)


def _saves(count: int) -> tuple[float, float]:
    """The median milliseconds of a plain and of a watched save, each a real change in autocommit."""
    watched, plain = Ticket.objects.earliest("id"), PlainTicket.objects.earliest("id")
    took: dict[str, list[float]] = {"plain": [], "watched": []}
    for number in range(count * 2):
        priority = PRIORITIES[number % len(PRIORITIES)]
        kind, row = ("plain", plain) if number % 2 else ("watched", watched)
        row.priority = priority
        took[kind].append(_timed(row.save))
    return percentile(took["plain"], 50), percentile(took["watched"], 50)


def _timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000
