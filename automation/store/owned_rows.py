"""Reads and deletes a tenant's rows of any table, page by page."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, models, transaction

from automation.store import statements

LONGEST_READ = 1000  # rows that are in memory at a time


def drop_page(model: type[models.Model], tenant_id: int, *, limit: int) -> int:
    """Deletes up to `limit` rows of a closed tenant, the newest first: a row that refers to its own table is younger.

    Straight from the table: no event is written, no signal sent. Nothing goes of a tenant that is open.
    """
    table, key = _quoted(model._meta.db_table), _quoted(_key(model))
    return statements.count(
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE tenant_id = %s"  # noqa: S608 quoted names
        f" AND EXISTS (SELECT 1 FROM tenants_tenant t WHERE t.id = %s AND t.closed_at IS NOT NULL)"
        f" ORDER BY {key} DESC LIMIT %s)",
        [tenant_id, tenant_id, limit],
    )


def empty_column(model: type[models.Model], column: str, tenant_id: int) -> int:
    """Sets a column of all of the tenant's rows to null."""
    table, name = _quoted(model._meta.db_table), _quoted(column)
    return statements.count(
        f"UPDATE {table} SET {name} = NULL WHERE tenant_id = %s AND {name} IS NOT NULL",  # noqa: S608 quoted names
        [tenant_id],
    )


def leases(tenant_id: int) -> int:
    """How many of the tenant's timers a worker is on at this moment."""
    return int(
        statements.value(
            "SELECT count(*) FROM automation_timer x WHERE x.state = 'leased' AND x.tenant_id = %s", [tenant_id]
        )
    )


def read(model: type[models.Model], tenant_id: int, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """All of the tenant's rows in the order of their keys, as Python values; each page is a statement of its own.

    `columns` begin with the key. A row that is written meanwhile may be in it or not; none comes twice.
    """
    names = ", ".join(_quoted(column) for column in columns)
    key = _quoted(columns[0])
    sql = (
        f"SELECT {names} FROM {_quoted(model._meta.db_table)} WHERE tenant_id = %s AND {key} > %s"  # noqa: S608 quoted
        f" ORDER BY {key} LIMIT %s"
    )
    after: Any = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql, [tenant_id, after, LONGEST_READ])
            page = cursor.fetchall()
        yield from page
        if len(page) < LONGEST_READ:
            return
        after = page[-1][0]


def _key(model: type[models.Model]) -> str:
    key = model._meta.pk
    return str(key.column)


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
