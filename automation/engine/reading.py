"""Reads automatable records as raw values by path: any number of them in one statement."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models

from automation.catalog.automatable import Automatable, Field
from automation.core.facts import encode
from automation.engine.changes import Reading
from automation.store import statements

Paths = tuple[tuple[str, str], ...]
_WHOLE = 2**53  # below it every JSON reader keeps whole numbers exactly


@dataclass(frozen=True, slots=True)
class Reader:
    """The statements that read an entry's records, and the types of what they answer.

    `own_sql` locks the rows (FOR NO KEY UPDATE, in the order of their ids) and answers their own columns, as they are
    once the lock is had. `whole_sql` answers every path and locks nothing: a count or a related row in a statement that
    waits for a lock would be that of before the wait. `update_tail` makes an UPDATE of one row answer it before and
    after.
    """

    own_sql: str
    own: Paths
    whole_sql: str
    whole: Paths
    update_tail: str

    def lock(self, ids: Iterable[int]) -> dict[int, Reading]:
        """Lock the records until the transaction ends; their own columns by path. Those that are gone are absent."""
        return self._run(self.own_sql, self.own, ids)

    def read(self, ids: Iterable[int]) -> dict[int, Reading]:
        """All paths of the records as this statement sees them. Those that are gone are absent."""
        return self._run(self.whole_sql, self.whole, ids)

    def update(self, head: str, params: Sequence[Any], pk: int) -> tuple[Reading, Reading] | None:
        """Lock and update one row by `head`, an UPDATE up to its SET; its own columns before, all paths after.

        None where there is no such row.
        """
        rows = statements.rows(f"{head} {self.update_tail}", [*params, *[pk] * self.update_tail.count("%s")])
        if not rows:
            return None
        tenant_id, is_whole, *values = rows[0]
        count = len(self.own)
        after = Reading(tenant_id, _typed(self.whole, values[count:])) if is_whole else self.read([pk])[pk]
        return Reading(tenant_id, _typed(self.own, values[:count])), after

    @property
    def is_flat(self) -> bool:
        """Whether the row itself holds all there is to read."""
        return self.own == self.whole

    def _run(self, sql: str, paths: Paths, ids: Iterable[int]) -> dict[int, Reading]:
        wanted = list(ids)
        rows = statements.rows(sql, [wanted]) if wanted else []
        return {row[0]: Reading(row[1], _typed(paths, row[2:])) for row in rows}


_readers: dict[str, tuple[Automatable, Reader]] = {}


def reader_of(entry: Automatable) -> Reader:
    """The reader of an entry, built once."""
    known = _readers.get(entry.name)
    if known is None or known[0] is not entry:
        known = _readers[entry.name] = (entry, _Builder(entry).build())
    return known[1]


def _typed(paths: Paths, values: Sequence[Any]) -> dict[str, Any]:
    return {path: _raw(value, type_) for (path, type_), value in zip(paths, values, strict=True)}


def _raw(value: Any, type_: str) -> Any:
    # What the database answers as text, whole number or truth is its own JSON form; numbers beyond a float's are not.
    kind = type(value)
    if value is None or kind is bool or (kind is str and type_ in ("text", "choice")):
        return value
    if kind is int and -_WHOLE < value < _WHOLE:
        return value
    return encode(str(value) if type_ == "text" else value, type_)


class _Builder:
    """Builds the statements of one entry. Every name in them is a model's own, quoted; no value is ever put in."""

    def __init__(self, entry: Automatable) -> None:
        self.entry = entry
        self.table = _quote(entry.model._meta.db_table)
        self.key = _quote(_column(entry.model._meta.pk))
        self.joins: dict[str, str] = {}
        self.links: set[str] = set()  # own columns that joins begin with

    def build(self) -> Reader:
        """The statements."""
        fields = self.entry.fields.values()
        own = [item for item in fields if item.column]
        elsewhere = [item for item in fields if not item.column]
        columns = [_quote(item.column) for item in own]
        others = [self._expression(item) for item in elsewhere]
        select = f"SELECT t.{self.key}, t.tenant_id"
        rows = f"WHERE t.{self.key} = ANY(%s::bigint[]) ORDER BY t.{self.key}"
        mine = [f"t.{column}" for column in columns]
        return Reader(
            own_sql=f"{', '.join([select, *mine])} FROM {self.table} t {rows} FOR NO KEY UPDATE OF t",
            own=tuple((item.path, item.type) for item in own),
            whole_sql=f"{', '.join([select, *mine, *others])} FROM {self.table} t {self._joined()} {rows}",
            whole=tuple((item.path, item.type) for item in [*own, *elsewhere]),
            update_tail=self._update_tail(columns, others),
        )

    def _update_tail(self, columns: list[str], others: list[str]) -> str:
        """The row as it was is `t`, read under the lock; what lies elsewhere is read beside it.

        That is what it will be after the update, too, unless the update moves a link that it is reached by, or the lock
        was waited for: `seen` is the row as the statement's snapshot knew it, before any wait.
        """
        after = [f"{self.table}.{column}" for column in columns]
        answer = [f"{self.table}.tenant_id", self._is_whole(), *(f"t.{column}" for column in columns), *after, *others]
        was = f"SELECT w.*, w.ctid AS row_version FROM {self.table} w WHERE w.{self.key} = %s FOR NO KEY UPDATE"  # noqa: S608
        # The key again and again: a planner doesn't see through the lock that all three rows are one.
        seen = f"JOIN {self.table} seen ON seen.{self.key} = %s" if others else ""
        same = f"{self.table}.{self.key} = %s"
        return f"FROM ({was}) t {seen} {self._joined()} WHERE {same} RETURNING {', '.join(answer)}"

    def _is_whole(self) -> str:
        if all(item.column for item in self.entry.fields.values()):
            return "true"
        still = [f"{self.table}.{column} IS NOT DISTINCT FROM t.{column}" for column in sorted(self.links)]
        return " AND ".join(["seen.ctid = t.row_version", *still])

    def _joined(self) -> str:
        return " ".join(self.joins.values())

    def _expression(self, item: Field) -> str:
        if item.counts:
            return self._count(_link_back(self.entry.model, item.orm_path))
        if item.type == "references":
            return self._references(self.entry.model._meta.get_field(item.orm_path))
        *way, last = item.orm_path.split("__")
        model, alias, prefix = self.entry.model, "t", "to"
        for part in way:
            link: Any = model._meta.get_field(part)
            if alias == "t":
                self.links.add(_quote(_column(link)))
            prefix = f"{prefix} {part}"
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
        return f"(SELECT count(*) FROM {_quote(part._meta.db_table)} x WHERE {self._belongs(part, link)})"  # noqa: S608

    def _references(self, many: Any) -> str:
        through = many.remote_field.through
        mine, theirs = (
            through._meta.get_field(name) for name in (many.m2m_field_name(), many.m2m_reverse_field_name())
        )
        wanted, table = _quote(_column(theirs)), _quote(through._meta.db_table)
        return f"ARRAY(SELECT x.{wanted} FROM {table} x WHERE {self._belongs(through, mine)} ORDER BY 1)"  # noqa: S608

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
