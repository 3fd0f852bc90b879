"""Reads automatable records as raw values by path: any number of them in one statement."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models

from automation.catalog.automatable import Automatable, Field
from automation.core.facts import encode
from automation.engine.changes import Reading


@dataclass(frozen=True, slots=True)
class Reader:
    """The two statements that read an entry's records, and the types of what they answer.

    `own_sql` locks the rows (FOR NO KEY UPDATE, in the order of their ids) and answers their own columns, as they are
    once the lock is had. `whole_sql` answers every path and locks nothing: a count or a related row in a statement that
    waits for a lock would be that of before the wait.
    """

    own_sql: str
    own: tuple[tuple[str, str], ...]
    whole_sql: str
    whole: tuple[tuple[str, str], ...]

    def lock(self, ids: Iterable[int], using: str = DEFAULT_DB_ALIAS) -> dict[int, Reading]:
        """Lock the records until the transaction ends; their own columns by path. Those that are gone are absent."""
        return _run(self.own_sql, self.own, ids, using)

    def read(self, ids: Iterable[int], using: str = DEFAULT_DB_ALIAS) -> dict[int, Reading]:
        """All paths of the records as this statement sees them. Those that are gone are absent."""
        return _run(self.whole_sql, self.whole, ids, using)

    @property
    def is_flat(self) -> bool:
        """Whether the row itself holds all there is to read."""
        return self.own == self.whole


_readers: dict[str, tuple[Automatable, Reader]] = {}


def reader_of(entry: Automatable) -> Reader:
    """The reader of an entry, built once."""
    known = _readers.get(entry.name)
    if known is None or known[0] is not entry:
        known = _readers[entry.name] = (entry, _Builder(entry).build())
    return known[1]


def _run(sql: str, paths: tuple[tuple[str, str], ...], ids: Iterable[int], using: str) -> dict[int, Reading]:
    wanted = list(ids)
    if not wanted:
        return {}
    with connections[using].cursor() as cursor:
        cursor.execute(sql, [wanted])
        rows = cursor.fetchall()
    return {
        row[0]: Reading(row[1], {path: _raw(value, type_) for (path, type_), value in zip(paths, row[2:], strict=True)})
        for row in rows
    }


def _raw(value: Any, type_: str) -> Any:
    if value is None or (type(value) is str and type_ == "choice"):
        return value
    if type_ == "text" and not isinstance(value, str):
        value = str(value)
    return encode(value, type_)


class _Builder:
    """Builds the statements of one entry. Every name in them is a model's own, quoted; no value is ever put in."""

    def __init__(self, entry: Automatable) -> None:
        self.entry = entry
        self.table = _quote(entry.model._meta.db_table)
        self.key = _quote(_column(entry.model._meta.pk))
        self.joins: dict[str, str] = {}

    def build(self) -> Reader:
        """Both statements."""
        fields = self.entry.fields.values()
        own = [item for item in fields if item.column]
        elsewhere = [item for item in fields if not item.column]
        columns = [f"t.{_quote(item.column)}" for item in own]
        others = [self._expression(item) for item in elsewhere]
        where = f"WHERE t.{self.key} = ANY(%s::bigint[]) ORDER BY t.{self.key}"
        return Reader(
            own_sql=f"{self._select(columns)} FROM {self.table} t {where} FOR NO KEY UPDATE OF t",
            own=tuple((item.path, item.type) for item in own),
            whole_sql=f"{self._select(columns + others)} FROM {self.table} t {' '.join(self.joins.values())} {where}",
            whole=tuple((item.path, item.type) for item in [*own, *elsewhere]),
        )

    def _select(self, expressions: list[str]) -> str:
        return f"SELECT {', '.join([f't.{self.key}', 't.tenant_id', *expressions])}"

    def _expression(self, item: Field) -> str:
        if item.counts:
            return self._count(_link_back(self.entry.model, item.orm_path))
        if item.type == "references":
            return self._references(self.entry.model._meta.get_field(item.orm_path))
        *way, last = item.orm_path.split("__")
        model, alias, prefix = self.entry.model, "t", ""
        for part in way:
            link: Any = model._meta.get_field(part)
            prefix = f"{prefix}__{part}" if prefix else part
            model, alias = self._join(link, alias, prefix)
        return f"{alias}.{_quote(_column(model._meta.get_field(last)))}"

    def _join(self, link: Any, before: str, prefix: str) -> tuple[type[models.Model], str]:
        alias = _quote(prefix)
        model: type[models.Model] = link.related_model
        target = _quote(_column(link.target_field))
        on = f"{alias}.{target} = {before}.{_quote(_column(link))}"
        self.joins[prefix] = f"LEFT JOIN {_quote(model._meta.db_table)} {alias} ON {on}"
        return model, alias

    def _count(self, link: Any) -> str:
        part = link.model
        return f"(SELECT count(*) FROM {_quote(part._meta.db_table)} x WHERE {self._belongs(part, link)})"

    def _references(self, many: Any) -> str:
        through = many.remote_field.through
        mine, theirs = (
            through._meta.get_field(name) for name in (many.m2m_field_name(), many.m2m_reverse_field_name())
        )
        wanted, table = _quote(_column(theirs)), _quote(through._meta.db_table)
        return f"ARRAY(SELECT x.{wanted} FROM {table} x WHERE {self._belongs(through, mine)} ORDER BY 1)"

    def _belongs(self, part: type[models.Model], link: Any) -> str:
        """The part's rows of this record; with the tenant where there is one, for the sake of the index."""
        mine = f"x.{_quote(_column(link))} = t.{self.key}"
        has_tenant = any(one.column == "tenant_id" for one in part._meta.concrete_fields)
        return f"x.tenant_id = t.tenant_id AND {mine}" if has_tenant else mine


def _link_back(model: type[models.Model], name: str) -> Any:
    """The foreign key behind a reverse relation, found by its query name or its accessor."""
    for relation in model._meta.related_objects:
        if name in (relation.name, relation.get_accessor_name()):
            return relation.field
    raise LookupError(f"{model._meta.label_lower} has no relation {name!r}")


def link_of(model: type[models.Model], item: Field) -> tuple[type[models.Model], list[str]]:
    """For a value kept in another table: that table's model, and the attributes of its rows that the value depends on.

    The first attribute is the link to the record.
    """
    if item.counts:
        link = _link_back(model, item.orm_path)
        return link.model, [link.attname]
    many: Any = model._meta.get_field(item.orm_path)
    through = many.remote_field.through
    names = (many.m2m_field_name(), many.m2m_reverse_field_name())
    return through, [through._meta.get_field(name).attname for name in names]


def _column(item: Any) -> str:
    return str(item.column)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
