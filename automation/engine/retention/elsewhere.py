"""Takes a person's words out of what isn't a run: errors of connections, jobs, pauses, the audit, the staff's log."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models, transaction

from automation.catalog.mentions import mentions
from automation.core.erasing import ERASED, Needles
from automation.engine.retention.tables import owned
from automation.engine.retention.terms import PAGE
from automation.models import Backtest, BulkJob, Connection, ConnectionCall, DeadLetter, Event, Notice, Pause
from automation.store import mentions as stored
from automation.store.owned_rows import Table
from tenants.models import AuditEntry

OURS: Mapping[type[models.Model], tuple[str, ...]] = {
    AuditEntry: ("reason", "before", "after"),
    Backtest: ("result", "error", "asked_by"),
    BulkJob: ("filters", "reason", "actor", "refusals"),
    Connection: ("last_error",),
    ConnectionCall: ("error",),
    DeadLetter: ("resolution", "actor"),
    Notice: ("title", "text", "said", "recipients", "error"),
    Pause: ("reason", "actor", "resumed_by", "ended_by"),
}
WHOLE = {(Notice, "recipients")}  # lists of addresses: what is left of one would be somebody else's, and be mailed
Note = Callable[[str, Sequence[tuple[Any, ...]]], None]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """One look for a person's words; `note` is told of each row that changes: what it is, and (key, …)."""

    tenant_id: int
    needles: Needles
    note: Note
    dry_run: bool

    def scrub(self) -> None:
        """All tables of the engine and of the host that may mention people."""
        tables = {table.model: table for table in owned()}
        for model, columns in columns_with_mentions().items():
            self._table(tables[model], columns)

    def _table(self, table: Table, columns: tuple[str, ...]) -> None:
        kinds = tuple(stored.Column.of(table.model, name) for name in columns)
        what, after = str(table.model._meta.verbose_name_plural), 0
        while True:
            with transaction.atomic():
                found = stored.rows(
                    table, kinds, self.tenant_id, self.needles.words, after=after, limit=PAGE, lock=not self.dry_run
                )
                if not found:
                    return
                changed = list(self._changed(table.model, kinds, found))
                self.note(what, changed)
                if changed and not self.dry_run:
                    stored.write(table, kinds, changed, audit=table.model is AuditEntry)
            after = found[-1][0]

    def _changed(
        self, model: type[models.Model], kinds: Sequence[stored.Column], found: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        for key, *values in found:
            new = [
                self._value(one, kind, whole=(model, kind.name) in WHOLE)
                for one, kind in zip(values, kinds, strict=True)
            ]
            if new != values:
                yield (key, *new)

    def _value(self, value: Any, kind: stored.Column, *, whole: bool) -> Any:
        """Values of JSON come and go as texts; of a `whole` list each entry with a word is erased altogether."""
        if value is None or not kind.is_json:
            return self.needles.scrub(value)
        before = json.loads(value)
        after = self.needles.scrub(before)
        if whole:
            after = [old if old == new else ERASED for old, new in zip(before, after, strict=True)]
        return value if after == before else json.dumps(after, ensure_ascii=False)

    def log_of(self, model: type[models.Model], record: int) -> None:
        """What the staff's log of the Django admin says of the person, and of the tenant's records with their words."""
        own = ContentType.objects.get_for_model(model)
        named = models.Q()
        for word in self.needles.words:
            named |= models.Q(object_repr__icontains=word) | models.Q(change_message__icontains=word)
        theirs = models.Q(content_type=own, object_id=str(record))
        found = LogEntry.objects.filter(theirs | named if self.needles.words else theirs).order_by("pk")
        after = 0
        while True:
            with transaction.atomic():
                page = list(found.filter(pk__gt=after).select_related("content_type")[:PAGE])
                if not page:
                    return
                self._log_page(page, own=(own.pk, str(record)))
            after = page[-1].pk

    def _log_page(self, page: Sequence[LogEntry], *, own: tuple[int, str]) -> None:
        ours, changed = self._ours(page), []
        for entry in page:
            is_own = (entry.content_type_id, entry.object_id) == own
            if is_own or entry.pk in ours:
                was = (entry.object_repr, entry.change_message)
                entry.object_repr = ERASED if is_own else self.needles.scrub(entry.object_repr)[:200]
                entry.change_message = self.needles.scrub(entry.change_message)
                changed += [entry] if was != (entry.object_repr, entry.change_message) else []
        self.note("entries of the staff's log", [(entry.pk,) for entry in changed])
        if changed and not self.dry_run:
            LogEntry.objects.bulk_update(changed, ["object_repr", "change_message"])

    def _ours(self, page: Sequence[LogEntry]) -> set[int]:
        """Those of the entries that are about a record of this tenant; of one that is gone only an event can tell."""
        ours: set[int] = set()
        for kind in {entry.content_type for entry in page if entry.content_type is not None}:
            model = kind.model_class()
            if model is None or not any(field.attname == "tenant_id" for field in model._meta.concrete_fields):
                continue
            about = {
                entry.pk: int(entry.object_id)
                for entry in page
                if entry.content_type_id == kind.pk and entry.object_id and entry.object_id.isdecimal()
            }
            records = set(about.values())
            there = dict(model._base_manager.filter(pk__in=records).values_list("pk", "tenant_id"))
            events = Event.objects.filter(
                tenant_id=self.tenant_id, model=model._meta.label_lower, record__in=records - there.keys()
            )
            gone = set(events.values_list("record", flat=True).distinct())
            theirs = gone | {pk for pk, tenant_id in there.items() if tenant_id == self.tenant_id}
            ours |= {pk for pk, record in about.items() if record in theirs}
        return ours


def columns_with_mentions() -> dict[type[models.Model], tuple[str, ...]]:
    """Every column, by model, out of which words are taken, the engine's and the host's."""
    return {**OURS, **mentions}
