"""Finds texts of any table of a tenant that have some words, and writes them back without."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection, models

from automation.store import statements
from automation.store.erasing import likes
from automation.store.owned_rows import Table


class Column(NamedTuple):
    """A text or JSON column; `longest` characters of a text, None for as many as there are."""

    name: str
    is_json: bool
    longest: int | None

    @classmethod
    def of(cls, model: type[models.Model], name: str) -> "Column":
        """The column of a model's field."""
        field = model._meta.get_field(name)
        assert isinstance(field, models.Field)  # noqa: S101 who names columns was refused anything else
        is_json = isinstance(field, models.JSONField)
        return cls(str(field.column), is_json, None if is_json else field.max_length)


def rows(
    table: Table,
    columns: Sequence[Column],
    tenant_id: int,
    words: Sequence[str],
    *,
    after: int,
    limit: int,
    lock: bool,
) -> list[tuple[Any, ...]]:
    """(key, values) of up to `limit` of the tenant's rows behind a key that have one of the words; JSON as its text."""
    key, names = _quoted(table.key), [f"{_quoted(one.name)}{'::text' if one.is_json else ''}" for one in columns]
    has = " OR ".join(f"{_quoted(one.name)}::text ILIKE ANY(%s)" for one in columns)
    sql = (
        f"SELECT {key}, {', '.join(names)} FROM {_quoted(table.model._meta.db_table)}"  # noqa: S608 quoted names
        f" WHERE {table.where()} AND {key} > %s AND ({has}) ORDER BY {key} LIMIT %s"
        f"{' FOR NO KEY UPDATE' if lock else ''}"
    )
    return statements.rows(sql, [tenant_id, after, *[likes(words)] * len(columns), limit])


def write(table: Table, columns: Sequence[Column], changed: Sequence[tuple[Any, ...]], *, audit: bool = False) -> None:
    """Writes (key, values) back; texts are cut where they would be too long. `audit`: else entries never change."""
    if audit:
        statements.value("SELECT set_config('tenants.erasing', 'on', true)")
    name, key = _quoted(table.model._meta.db_table), _quoted(table.key)
    places = [f"v{place}" for place, _one in enumerate(columns)]
    sets = ", ".join(f"{_quoted(one.name)} = {_value(one, place)}" for one, place in zip(columns, places, strict=True))
    types = ", ".join(["%s::bigint[]", *["%s::text[]"] * len(columns)])
    statements.count(
        f"UPDATE {name} SET {sets} FROM unnest({types}) AS u (k, {', '.join(places)}) WHERE {name}.{key} = u.k",  # noqa: S608
        statements.columns(changed),
    )
    if audit:
        statements.value("SELECT set_config('tenants.erasing', '', true)")


def _value(column: Column, place: str) -> str:
    if column.is_json:
        return f"u.{place}::jsonb"
    return f"u.{place}" if column.longest is None else f"left(u.{place}, {column.longest})"


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
