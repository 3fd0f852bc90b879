"""Writes all that belongs to a tenant into one zip archive, a file a table, without ever holding more than a page."""

import csv
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from typing import IO, Any, TextIO

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import BinaryField, JSONField

from automation.core.cells import safe
from automation.engine.retention.tables import owned
from automation.store import clock, owned_rows
from automation.store.owned_rows import Table
from tenants import audit
from tenants.context import acting_for
from tenants.models import Membership, Tenant

FORMS = ("jsonl", "csv")
SAID_EVERY = 5000  # rows
PEOPLE = ("id", "user_id", "user__username", "user__first_name", "user__last_name", "user__email", "role", "is_active")
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One file of the archive: its name, its columns, and its rows as they are read."""

    name: str
    columns: tuple[str, ...]
    rows: Iterator[Sequence[Any]]


def export(
    tenant: Tenant, target: IO[bytes], *, form: str = "jsonl", progress: Progress | None = None
) -> dict[str, int]:
    """Writes the archive and answers how many rows of each table it has; `form` is "jsonl" or "csv".

    Secrets and passwords are left out. Each page of a table is a statement of its own, since one long transaction would
    hold up the engine's tables: what is written meanwhile may be in one table and not yet in another. `manifest.json`
    says of when it is. In CSV a text that a spreadsheet would run has an apostrophe before it.
    """
    if form not in FORMS:
        raise ValueError(f"there is no form {form!r}")
    told = progress or (lambda name, rows: None)
    counts: dict[str, int] = {}
    began = clock.now()
    with acting_for(tenant.pk), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for sheet in _sheets(tenant):
            with archive.open(f"{sheet.name}.{form}", "w", force_zip64=True) as entry:
                stream = TextIOWrapper(entry, encoding="utf-8", newline="")
                counts[sheet.name] = _write(sheet, stream, form, told)
                stream.flush()
        manifest = {
            "tenant": {"slug": tenant.slug, "name": tenant.name, "time_zone": tenant.time_zone},
            "began_at": began.isoformat(),
            "ended_at": clock.now().isoformat(),
            "rows": counts,
        }
        archive.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False))
        audit.record("export", f"tenant:{tenant.pk}", tenant_id=tenant.pk, after={"rows": sum(counts.values())})
    return counts


def _sheets(tenant: Tenant) -> Iterator[Sheet]:
    people = Membership.objects.order_by("id").values_list(*PEOPLE)
    yield Sheet("people", tuple(name.replace("user__", "") for name in PEOPLE), people.iterator(chunk_size=1000))
    for table in sorted(owned(), key=lambda one: one.name):
        fields = [field for field in table.model._meta.concrete_fields if not isinstance(field, BinaryField)]
        fields.sort(key=lambda field: not field.primary_key)
        columns = tuple(str(field.column) for field in fields)
        documents = {place for place, field in enumerate(fields) if isinstance(field, JSONField)}
        yield Sheet(table.name, columns, _read(table, tenant.pk, columns, documents))


def _read(table: Table, tenant_id: int, columns: Sequence[str], documents: set[int]) -> Iterator[Sequence[Any]]:
    """The rows, their documents as JSON values."""
    for row in owned_rows.read(table, tenant_id, columns):
        yield [
            json.loads(value) if place in documents and isinstance(value, str) else value
            for place, value in enumerate(row)
        ]


def _write(sheet: Sheet, stream: TextIO, form: str, told: Progress) -> int:
    put = _csv_lines(sheet, stream) if form == "csv" else _json_lines(sheet, stream)
    count = 0
    for count, row in enumerate(sheet.rows, start=1):
        put(row)
        if count % SAID_EVERY == 0:
            told(sheet.name, count)
    told(sheet.name, count)
    return count


def _json_lines(sheet: Sheet, stream: TextIO) -> Callable[[Sequence[Any]], object]:
    """What writes a row as a JSON object in a line."""

    def put(row: Sequence[Any]) -> None:
        found = dict(zip(sheet.columns, row, strict=True))
        stream.write(json.dumps(found, cls=DjangoJSONEncoder, ensure_ascii=False) + "\n")

    return put


def _csv_lines(sheet: Sheet, stream: TextIO) -> Callable[[Sequence[Any]], object]:
    """What writes a row as one of CSV, below the names of the columns."""
    writer = csv.writer(stream)
    writer.writerow(sheet.columns)
    return lambda row: writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> Any:
    """A value as a cell: numbers as they are, all else as text that no spreadsheet runs."""
    if value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool)):
        return value
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, list | dict | bool):
        return safe(json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False))
    return safe(str(DjangoJSONEncoder().default(value)))
