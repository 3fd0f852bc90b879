"""Takes everything of a closed tenant away, table by table, until only the tenant's own row is left."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from django.db import transaction

from automation.core.states import RUN_STATES
from automation.engine.retention.portions import Portion
from automation.engine.retention.tables import loose, owned
from automation.engine.retention.terms import PAGE
from automation.models import Attempt, Run, StepExecution
from automation.store import owned_rows
from automation.store import retention_rounds as rounds
from tenants import audit

WITH_RUNS = (Run, StepExecution, Attempt)  # go with their runs: nothing finds them by tenant


def purge(tenant_id: int) -> Iterator[Portion]:
    """Deletes all rows of a closed tenant in batches; while a worker is on one of its steps nothing is touched.

    It can be stopped anywhere and begun again. Its end is an audit entry of the installation, for the tenant's own go,
    too. Logins stay: they are the installation's, and may belong to other tenants.
    """
    if owned_rows.leases(tenant_id):
        rounds.finish(tenant_id)
        return
    if not rounds.mark_purging(tenant_id):
        return
    counts: Counter[str] = Counter()
    for what, drop in _drops(tenant_id):
        while gone := drop():
            counts[what] += gone
            yield Portion(what, gone, {what: gone})
    with transaction.atomic():
        if rounds.mark_purged(tenant_id):
            audit.record("tenant.purged", f"tenant:{tenant_id}", tenant_id=None, after=dict(counts))


def _drops(tenant_id: int) -> Iterator[tuple[str, Callable[[], int]]]:
    """What deletes a page of each table, in the order in which they can go."""
    yield "automation.run", partial(owned_rows.drop_runs, tenant_id, RUN_STATES, limit=PAGE)
    tables = [table for table in owned() if table.model not in WITH_RUNS]
    for table, column in loose(tables):
        owned_rows.empty_column(table, column, tenant_id)
    for table in tables:
        yield table.name, partial(owned_rows.drop_page, table, tenant_id, limit=PAGE)
