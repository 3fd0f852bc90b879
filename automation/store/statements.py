"""Runs one statement and answers its rows or its count: the only place where the store touches a cursor."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection


def rows(sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """All rows that a statement answers."""
    with _cursor() as cursor:
        _execute(cursor, sql, params)
        return list(cursor.fetchall())


def value(sql: str, params: Sequence[Any] = ()) -> Any:
    """The first column of a statement's only row."""
    with _cursor() as cursor:
        _execute(cursor, sql, params)
        row = cursor.fetchone()
    return None if row is None else row[0]


def count(sql: str, params: Sequence[Any] = ()) -> int:
    """How many rows a statement wrote."""
    with _cursor() as cursor:
        _execute(cursor, sql, params)
        return int(cursor.rowcount)


def columns(table: Sequence[Sequence[Any]], width: int = 0) -> list[list[Any]]:
    """Rows turned into columns, as `unnest` takes them; `width` empty ones where there is no row."""
    return [list(column) for column in zip(*table, strict=True)] if table else [[] for _ in range(width)]


@contextmanager
def _cursor() -> Iterator[Any]:
    """A cursor whose statements the server plans once: the engine's are few and always the same.

    While somebody counts queries Django's own cursor serves, which is the one that notes them.
    """
    if connection.queries_logged or connection.execute_wrappers:
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor


def _execute(cursor: Any, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> None:
    if isinstance(cursor, psycopg.Cursor):
        cursor.execute(sql, params or None, prepare=True)
    else:
        cursor.execute(sql, params)
