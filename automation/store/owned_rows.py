"""Reads and deletes a tenant's rows of any table, page by page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, models, transaction

from automation.store import statements

PAGE = 1000  # rows that are in memory at a time
CLOSED = "EXISTS (SELECT 1 FROM tenants_tenant t WHERE t.id = %s AND t.closed_at IS NOT NULL)"

NEWEST_RUNS = f"""
SELECT x.id FROM unnest(%s::varchar[]) u (state) CROSS JOIN LATERAL
  (SELECT r.id FROM automation_run r WHERE r.tenant_id = %s AND r.state = u.state ORDER BY r.id DESC LIMIT %s) x
 WHERE {CLOSED} ORDER BY x.id DESC LIMIT %s
"""  # noqa: S608 the condition above


@dataclass(frozen=True, slots=True)
class Table:
    """A table of tenants' rows: they name their tenant, or `through` says what of the tenant's they belong to."""

    model: type[models.Model]
    through: "models.ForeignKey[Any, Any] | None" = None

    @property
    def name(self) -> str:
        """As people and audit entries call it: "helpdesk.ticket"."""
        return str(self.model._meta.label_lower)

    @property
    def key(self) -> str:
        """The column of its key."""
        return str(self.model._meta.pk.column)

    def where(self) -> str:
        """The condition by which a tenant's rows are found, with a place for its id."""
        if self.through is None:
            return "tenant_id = %s"
        parent = self.through.related_model._meta
        column, table, key = (_quoted(str(one)) for one in (self.through.column, parent.db_table, parent.pk.column))
        return f"{column} IN (SELECT {key} FROM {table} WHERE tenant_id = %s)"  # noqa: S608 quoted names


def drop_page(table: Table, tenant_id: int, *, limit: int) -> int:
    """Deletes up to `limit` rows of a closed tenant, the newest first: a row that refers to its own table is younger.

    Straight from the table: no event is written, no signal sent. Nothing goes of a tenant that is open.
    """
    name, key = _quoted(table.model._meta.db_table), _quoted(table.key)
    return statements.count(
        f"DELETE FROM {name} WHERE {key} IN (SELECT {key} FROM {name} WHERE {table.where()} AND {CLOSED}"  # noqa: S608
        f" ORDER BY {key} DESC LIMIT %s)",
        [tenant_id, tenant_id, limit],
    )


def drop_runs(tenant_id: int, states: Sequence[str], *, limit: int) -> int:
    """Deletes up to `limit` runs of a closed tenant with their steps, attempts and dead letters; the newest first."""
    with transaction.atomic():
        found = statements.rows(NEWEST_RUNS, [list(states), tenant_id, limit, tenant_id, limit])
        ids = [row[0] for row in found]
        if ids:
            steps = "(SELECT s.id FROM automation_stepexecution s WHERE s.run_id = ANY(%s))"
            statements.count(f"DELETE FROM automation_timer WHERE step_id IN {steps}", [ids])  # noqa: S608 above
            statements.count("DELETE FROM automation_deadletter WHERE run_id = ANY(%s)", [ids])
            statements.count(f"DELETE FROM automation_attempt WHERE step_id IN {steps}", [ids])  # noqa: S608 above
            statements.count("DELETE FROM automation_stepexecution WHERE run_id = ANY(%s)", [ids])
            statements.count("DELETE FROM automation_run WHERE id = ANY(%s)", [ids])
    return len(ids)


def empty_column(table: Table, column: str, tenant_id: int) -> int:
    """Sets a column of all of a closed tenant's rows to null."""
    name, link = _quoted(table.model._meta.db_table), _quoted(column)
    return statements.count(
        f"UPDATE {name} SET {link} = NULL WHERE {table.where()} AND {link} IS NOT NULL AND {CLOSED}",  # noqa: S608
        [tenant_id, tenant_id],
    )


def leases(tenant_id: int) -> int:
    """How many of the tenant's timers a worker is on at this moment."""
    return int(
        statements.value(
            "SELECT count(*) FROM automation_timer x WHERE x.state = 'leased' AND x.tenant_id = %s", [tenant_id]
        )
    )


def read(table: Table, tenant_id: int, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """All of the tenant's rows in the order of their keys, as Python values; each page is a statement of its own.

    `columns` begin with the key. A row that is written meanwhile may be in it or not; none comes twice.
    """
    names, key = ", ".join(_quoted(column) for column in columns), _quoted(columns[0])
    sql = (
        f"SELECT {names} FROM {_quoted(table.model._meta.db_table)} WHERE {table.where()} AND {key} > %s"  # noqa: S608
        f" ORDER BY {key} LIMIT %s"
    )
    after: Any = 0
    while page := statements.rows(sql, [tenant_id, after, PAGE]):
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
