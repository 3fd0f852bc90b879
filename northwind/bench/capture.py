"""What a save of a watched record costs, what follows on its commit included, against one that nobody watches."""

import random
import time
from collections.abc import Callable
from typing import Any

from django.db import models

from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured, percentile
from northwind.bench.tenants import PERSON, make_tenants
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
    """Saves of three kinds by turns, so that all see the same machine; their medians are compared."""
    saves, many = place.size(SAVES, least=100), place.size(MANY, least=FEW)
    place.tell(f"publishing {many} rules")
    plain_tenant, few_tenant, many_tenant = (
        make_tenants(1, prefix, tickets=1, rules=[definitions.elsewhere(one) for one in range(count)])[0]
        for prefix, count in (("plain", 0), ("few", FEW), ("many", many))
    )
    place.tell(f"{saves} saves of each kind")
    took: dict[str, list[float]] = {"plain": [], "few": [], "many": []}
    kinds = {"plain": (plain_tenant, PlainTicket), "few": (few_tenant, Ticket), "many": (many_tenant, Ticket)}
    rows = {kind: _row(*of) for kind, of in kinds.items()}
    rng = random.Random(1)  # noqa: S311 repeatable
    for number in range(saves):
        for kind in rng.sample(list(kinds), len(kinds)):
            rows[kind].priority = PRIORITIES[number % len(PRIORITIES)]
            with acting_for(kinds[kind][0], PERSON):
                took[kind].append(_timed(rows[kind].save))
    plain, few, lots = (percentile(took[kind], 50) for kind in kinds)
    figures = {
        "plain_ms": plain,
        f"watched_ms_{FEW}_rules": few,
        f"watched_ms_{many}_rules": lots,
        "many_to_few": lots / few,
        f"ratio_{FEW}_rules": few / plain,
        f"ratio_{many}_rules": lots / plain,
    }
    # The dearer of the two counts: a bar that only one number of rules reaches isn't reached.
    bars = [Bar("watched ÷ plain", max(few, lots) / plain, FIRST, GOAL)]
    return Measured(figures, bars=[*bars, Bar(f"{many} rules ÷ {FEW}", lots / few, FLAT, 1.05)])


def _row(tenant_id: int, model: Any) -> Any:
    with acting_for(tenant_id):
        return model.objects.earliest("id")


def _timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000
