"""The base of a watched model: every way to write its rows also writes the event."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, TypeVar

from django.core.checks import CheckMessage
from django.db import models, router, transaction
from django.db.models.deletion import Collector

from automation.catalog.automatable import Automatable
from automation.core.values import UNSTORABLE, clean
from automation.engine.bracket import bracket, linked_ids
from automation.engine.captured_checks import problems_of
from automation.engine.links import Link, attnames, links_of
from automation.engine.saving import capture_new, update_captured
from tenants.managers import TenantManager, TenantQuerySet, give_owner
from tenants.models import TenantOwned

M = TypeVar("M", bound=models.Model)


class WatchedQuerySet(TenantQuerySet[M]):
    """Rows whose changes are events, however many are written at once, in a constant number of statements."""

    def bulk_create(self, objs: Iterable[M], *args: Any, **kwargs: Any) -> list[M]:
        """Insert many; each record's event is in the same transaction.

        ValueError with `update_conflicts`, or for records with `ignore_conflicts`: the database doesn't say then which
        rows it wrote. Parts, such as the links behind a many-to-many field, may be inserted with `ignore_conflicts`.
        """
        rows, links = list(objs), links_of(self.model)
        ignores = bool(kwargs.get("ignore_conflicts")) or True in args[1:2]
        if kwargs.get("update_conflicts") or len(args) > 2 or (ignores and not all(link.is_part for link in links)):
            raise ValueError("What changed can't be captured where the database resolves conflicts by itself.")
        for row in rows:
            clean_texts(row)
        if not links or not rows:
            return super().bulk_create(rows, *args, **kwargs)
        with bracket() as touched:
            for link in links:
                if link.is_part:
                    touched.before(link, (getattr(row, link.attname) for row in rows))
            made = super().bulk_create(rows, *args, **kwargs)
            touched.made([link for link in links if not link.is_part], [row.pk for row in made])
        return made

    def bulk_update(self, objs: Iterable[M], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Update named fields of many; captured by the `update` that Django makes of it, one a batch."""
        rows = list(objs)
        for row in rows:
            clean_texts(row)
        return super().bulk_update(rows, fields, batch_size)

    def update(self, **kwargs: Any) -> int:
        """Update as usual; only what really changes is captured."""
        kwargs = {name: clean(value) if isinstance(value, str) else value for name, value in kwargs.items()}
        links = [link for link in links_of(self.model) if link.concerns(self.model, kwargs)]
        if not links:
            return super().update(**kwargs)
        with bracket() as touched:
            ids = list(self.order_by().values_list("pk", flat=True))
            # The condition is judged again, under the locks: a row that has stopped to match is left alone.
            rows = self.filter(pk__in=ids)
            self._result_cache = None
            for link in links:
                if link.is_part:
                    touched.before(link, linked_ids(link, rows) | {_key(kwargs, self.model, link.attname)})
                else:
                    touched.before(link, ids)
            return super(WatchedQuerySet, rows).update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete as usual, with what hangs on the rows; each record's event keeps its last snapshot."""
        self._not_support_combined_queries("delete")  # type: ignore[attr-defined]
        if self.query.is_sliced or self.query.distinct_fields or self._fields is not None:  # type: ignore[attr-defined]
            raise TypeError("A slice, distinct fields or values can't be deleted.")
        rows = self._chain()  # type: ignore[attr-defined]
        rows._for_write = True
        rows.query.select_for_update = rows.query.select_related = False
        rows.query.clear_ordering(force=True)
        collector = CapturingCollector(using=rows.db, origin=self)
        collector.collect(rows)
        self._result_cache = None
        return collector.delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _raw_delete(self, using: str | None) -> int:
        """What Django calls for rows that it deletes without loading them, whoever's deletion they hang on."""
        links = links_of(self.model)
        if not links:
            return int(super()._raw_delete(using))
        with bracket() as touched:
            for link in links:
                touched.before(link, linked_ids(link, self), whole=True)
            return int(super()._raw_delete(using))

    _raw_delete.alters_data = True  # type: ignore[attr-defined]


class WatchedManager(TenantManager[M]):
    """The tenant's own rows, written so that changes are events."""

    _queryset_class = WatchedQuerySet


class EveryWatched(models.Manager[M]):
    """Django's own way to rows of every tenant, for links and cascades; what it writes is captured all the same."""

    _queryset_class = WatchedQuerySet


class Watched(TenantOwned):
    """The base of a record, or of a part of one, whose changes are events.

    `save()`, `delete()` and the queryset write row and event in one transaction, in autocommit too. A save of a whole
    record that exists leaves the columns named in `KEPT_BY_DATABASE` alone: an older copy in memory must not undo what
    triggers wrote. Texts are stored without NUL and lone surrogates, which no database text can hold. Such models live
    in the default database, where events are.
    """

    CAPTURES_CHANGES: ClassVar[bool] = True  # what `manage.py check` asks of every model that rules may watch
    KEPT_BY_DATABASE: ClassVar[frozenset[str]] = frozenset()

    _captured_as: Automatable | None = None  # while this copy is saved: as what its change is captured

    objects: ClassVar[WatchedManager[Any]] = WatchedManager()
    _every: ClassVar[EveryWatched[Any]] = EveryWatched()

    class Meta:
        abstract = True
        base_manager_name = "_every"

    def save(  # type: ignore[override]
        self,
        *,
        force_insert: bool = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Save as usual, and capture. A record that was deleted meanwhile isn't made again: DatabaseError."""
        model = type(self)
        names = self._names_to_write(update_fields, force_insert)
        clean_texts(self)
        links = [link for link in links_of(model) if names is None or link.concerns(model, names)]
        options: dict[str, Any] = {"force_insert": force_insert, "force_update": force_update, "update_fields": names}
        parts = [link for link in links if link.is_part]
        outer, self._captured_as = self._captured_as, next((link.entry for link in links if not link.is_part), None)
        try:
            with self._around_save(parts, is_new=force_insert or self.pk is None) if links else nullcontext():
                super().save(using=using, **options)
        finally:
            self._captured_as = outer

    save.alters_data = True  # type: ignore[attr-defined]

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete as usual, with what hangs on it, and capture."""
        if self.pk is None:
            raise ValueError(f"This {self._meta.verbose_name} was never saved, so it can't be deleted.")
        give_owner(self)
        collector = CapturingCollector(using=using or router.db_for_write(type(self), instance=self), origin=self)
        collector.collect([self], keep_parents=keep_parents)
        return collector.delete()

    delete.alters_data = True  # type: ignore[attr-defined]

    @classmethod
    def check(cls, **kwargs: Any) -> list[CheckMessage]:
        """Django's checks, and that nothing changes these rows unnoticed."""
        return [*super().check(**kwargs), *problems_of(cls, Watched)]

    # The two statements of Django's save. Captured at once, so that what a receiver of its signals does comes after.

    def _do_update(self, base_qs: Any, using: str, pk_val: Any, values: Any, *rest: Any) -> bool:  # type: ignore[override]
        """The same UPDATE, which also answers the row before and after."""
        if self._captured_as is None or not values:
            return bool(super()._do_update(base_qs, using, pk_val, values, *rest))
        return update_captured(self._captured_as, base_qs.filter(pk=pk_val), values)

    def _do_insert(self, manager: Any, using: str, fields: Any, returning_fields: Any, raw: bool) -> Any:
        """The same INSERT."""
        rows = super()._do_insert(manager, using, fields, returning_fields, raw)  # type: ignore[misc]
        if self._captured_as is not None:
            made = dict(zip((field.attname for field in returning_fields), rows[0] if rows else (), strict=False))
            key: Any = self._meta.pk
            capture_new(self._captured_as, self.pk if self.pk is not None else made[key.attname])
        return rows

    def _names_to_write(self, names: Iterable[str] | None, force_insert: bool) -> Collection[str] | None:
        if names is not None:
            return frozenset(names)
        if not self.KEPT_BY_DATABASE or self._state.adding or force_insert:
            return None
        left_out = self.KEPT_BY_DATABASE | self.get_deferred_fields()
        return [one.name for one in _writable(type(self)) if not {one.name, one.attname} & left_out]

    @contextmanager
    def _around_save(self, parts: Collection[Link], *, is_new: bool) -> Iterator[None]:
        """One transaction; around a part also a look at the records that it belongs to."""
        if not parts:
            with transaction.atomic(savepoint=False):
                yield
            return
        with bracket() as touched:
            for link in parts:
                touched.before(link, self._records_before(link, is_new=is_new))
            yield

    def _records_before(self, link: Link, *, is_new: bool) -> set[int | None]:
        """The records that this row is a part of, before the save and after it."""
        now = {getattr(self, link.attname)}
        if is_new:
            return now
        # A part that says the same as before changes no record.
        rows = type(self)._every.filter(pk=self.pk)
        was = rows.values(*link.matters).first()
        if was is not None and all(was[name] == getattr(self, name) for name in link.matters):
            return set()
        return now | ({was[link.attname]} if was is not None else set())


class CapturingCollector(Collector):
    """Django's collector of what a deletion takes with it; captures the rows that it loads before deleting them."""

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete all that was collected. What isn't loaded is captured by the queryset that deletes or updates it."""
        loaded = {model: [row.pk for row in rows] for model, rows in self.data.items() if issubclass(model, Watched)}
        with bracket() as touched:
            for model, ids in loaded.items():
                rows = model._every.filter(pk__in=ids)
                for link in links_of(model):
                    touched.before(link, linked_ids(link, rows) if link.is_part else ids, whole=True)
            return super().delete()


def clean_texts(row: models.Model) -> None:
    """Take out of a row's texts what no database text can hold."""
    for one in _writable(type(row)):
        value = row.__dict__.get(one.attname)
        if isinstance(value, str):
            if UNSTORABLE.search(value):
                setattr(row, one.attname, clean(value))
        elif value and isinstance(value, list | tuple | dict):
            setattr(row, one.attname, clean(value))


_written: dict[type[models.Model], list[Any]] = {}


def _writable(model: type[models.Model]) -> list[Any]:
    """The model's own columns that a save writes."""
    if model not in _written:
        _written[model] = [one for one in model._meta.concrete_fields if not one.primary_key and not one.generated]
    return _written[model]


def _key(kwargs: dict[str, Any], model: type[models.Model], attname: str) -> int | None:
    """The record that an update links its rows to; None where it doesn't. ValueError where only the database knows."""
    for name, value in kwargs.items():
        if attname in attnames(model, [name]):
            key = value.pk if isinstance(value, models.Model) else value
            if key is not None and not isinstance(key, int):
                raise ValueError(
                    f"{name!r} must be set to a record or its id, so that the record's change is captured."
                )
            return key
    return None
