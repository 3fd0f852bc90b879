"""Runs one statement and answers its rows or its count: the only place where the store touches a cursor."""

from collections.abc import Sequence
from typing import Any

from django.db import connection


def rows(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows that a statement answers."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def value(sql: str, params: Sequence[Any] = ()) -> Any:
    """The first column of a statement's only row."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        row = cursor.fetchone()
    return None if row is None else row[0]


def count(sql: str, params: Sequence[Any] = ()) -> int:
    """How many rows a statement wrote."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def columns(table: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows turned into columns, as `unnest` takes them."""
    return [list(column) for column in zip(*table, strict=True)]
