"""Takes everything of a closed tenant away, table by table, until only the tenant's own row is left."""

from collections import Counter
from collections.abc import Iterator

from django.db import transaction

from automation.engine.retention.portions import Portion
from automation.engine.retention.tables import loose, owned
from automation.engine.retention.terms import PAGE
from automation.store import owned_rows
from automation.store import retention_rounds as rounds
from tenants import audit


def purge(tenant_id: int) -> Iterator[Portion]:
    """Deletes all rows of a closed tenant in batches; while a worker is on one of its steps nothing is touched.

    It can be stopped anywhere and begun again. Its end is an audit entry of the installation, for the tenant's own go,
    too. Logins stay: they are the installation's, and may belong to other tenants.
    """
    if owned_rows.leases(tenant_id):
        rounds.finish(tenant_id)
        return
    counts: Counter[str] = Counter()
    models = owned()
    for model, column in loose(models):
        owned_rows.empty_column(model, column, tenant_id)
    for model in models:
        what = str(model._meta.label_lower)
        while gone := owned_rows.drop_page(model, tenant_id, limit=PAGE):
            counts[what] += gone
            yield Portion(what, gone, {what: gone})
    with transaction.atomic():
        if rounds.mark_purged(tenant_id):
            audit.record("tenant.purged", f"tenant:{tenant_id}", tenant_id=None, after=dict(counts))
