"""Runs one statement and answers its rows or its count: the only place where the store touches a cursor."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections


def rows(sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """All rows that a statement answers."""
    return _run(sql, params, all_rows=True)[0]


def value(sql: str, params: Sequence[Any] = ()) -> Any:
    """The first column of a statement's first row; None where it has none."""
    found = _run(sql, params, all_rows=True)[0]
    return found[0][0] if found else None


def count(sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> int:
    """How many rows a statement wrote."""
    return _run(sql, params, all_rows=False)[1]


def columns(table: Sequence[Sequence[Any]], width: int = 0) -> list[list[Any]]:
    """Rows turned into columns, as `unnest` takes them; `width` empty ones where there is no row."""
    return [list(column) for column in zip(*table, strict=True)] if table else [[] for _ in range(width)]


def _run(sql: str, params: Sequence[Any] | Mapping[str, Any], *, all_rows: bool) -> tuple[list[tuple[Any, ...]], int]:
    """Executes a statement that the server plans once: the engine's are few and always the same.

    While somebody counts queries Django's own cursor serves, which is the one that notes them.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.queries_logged or connection.execute_wrappers:
        with connection.cursor() as noted:
            noted.execute(sql, params)
            return (list(noted.fetchall()) if all_rows else []), int(noted.rowcount)
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = psycopg.Cursor(connection.connection)
        cursor.execute(sql, params or None, prepare=True)
        return (cursor.fetchall() if all_rows else []), cursor.rowcount
