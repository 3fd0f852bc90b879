"""Runs an import chunk by chunk, each committed with its report, so that it goes on where it stopped."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from automation.extend import importing
from northwind.imports.chunk import CREATED, REJECTED, UNCHANGED, UPDATED, Draft, Importer
from northwind.imports.files import CsvFile, Row
from northwind.imports.models import ImportedRow, ImportJob
from northwind.imports.target import Target
from tenants import audit
from tenants.models import Tenant

CHUNK = 200  # rows in one transaction: what is done again, at most, after a stop
TRIES = 3
BATCH_LENGTH = 80
OUTCOMES = (CREATED, UPDATED, UNCHANGED, REJECTED)
Tell = Callable[[ImportJob], None]
Report = Callable[[Sequence[Draft]], None]


class ImportRefused(ValueError):
    """Why an import isn't begun, or isn't gone on with."""


class ImportedAlready(ImportRefused):
    """The file has been imported; `job` says when, and what became of its rows."""

    def __init__(self, job: ImportJob) -> None:
        self.job = job
        places = {"file": job.file_name, "batch": job.batch, "at": f"{job.finished_at:%Y-%m-%d %H:%M} UTC"}
        super().__init__(_("%(file)s was imported already, as batch “%(batch)s”, on %(at)s.") % places)


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is imported: `rules` whether rules run for it, `key` the column by which rows find their records."""

    rules: bool = True
    key: str = "id"
    create_missing: bool = False


def unfinished(target: Target, digest: str) -> ImportJob | None:
    """The current tenant's import of a file of this digest that isn't at its end."""
    return ImportJob.objects.filter(kind=target.kind, digest=digest, finished_at=None).first()


def finished(target: Target, digest: str) -> ImportJob | None:
    """The current tenant's last import of a file of this digest."""
    return ImportJob.objects.filter(kind=target.kind, digest=digest, finished_at__isnull=False).order_by("-id").first()


def batch_name(target: Target, digest: str) -> str:
    """A name for the batch of a new import: another one each time that a file is imported."""
    earlier = ImportJob.objects.filter(kind=target.kind, digest=digest).count()
    name = f"{target.kind}-{digest[:8]}"
    return f"{name}-{earlier + 1}" if earlier else name


def begin(target: Target, file: CsvFile, options: Options, *, batch: str, again: bool = False) -> ImportJob:
    """A new import for the current tenant, or the one of this very file that isn't at its end.

    Reads the whole file first: `FileProblem` where it is broken, before anything is written. Raises `ImportedAlready`
    unless it is to be done `again`, and `ImportRefused` for other options than those that it was begun with.
    """
    target.layout(file.header(), key=options.key)
    digest = file.digest()
    job = unfinished(target, digest)
    if job is not None:
        if job.options != asdict(options) or job.batch != batch:
            message = _("It was begun as batch “%(batch)s” with other options: %(options)s.")
            raise ImportRefused(message % {"batch": job.batch, "options": job.options})
        return job
    last = finished(target, digest)
    if last is not None and not again:
        raise ImportedAlready(last)
    job = planned(target, file, options, batch=batch, digest=digest)
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            after = {"kind": job.kind, "batch": job.batch, "rows": job.rows_total, **job.options}
            audit.record("import", f"import:{job.pk}", tenant_id=job.tenant_id, after=after)
    except IntegrityError as error:
        raise ImportRefused(_("Another process has just begun this import.")) from error
    return job


def planned(target: Target, file: CsvFile, options: Options, *, batch: str, digest: str) -> ImportJob:
    """An import that isn't stored: for one that is only tried."""
    target.layout(file.header(), key=options.key)
    return ImportJob(
        kind=target.kind,
        batch=batch,
        file_name=file.path.name.encode(errors="replace").decode()[:255],
        digest=digest,
        options=asdict(options),
        rows_total=file.count(),
    )


def run(job: ImportJob, target: Target, file: CsvFile, tenant: Tenant, *, tell: Tell, report: Report) -> None:
    """Imports what is left of the file; `tell` after each chunk. A job that isn't stored only tries, and undoes it all.

    Raises `ImportRefused` where another process is at the same import.
    """
    options = Options(**job.options)
    importer = Importer(
        target,
        target.layout(file.header(), key=options.key),
        options.key,
        tenant.zone,
        create_missing=options.create_missing,
    )
    for rows in _chunks(file, after=job.rows_done):
        report(_tried(job, importer, rows, rules=options.rules))
        tell(job)
    if job.pk is not None:
        _finish(job)


def _chunks(file: CsvFile, *, after: int) -> Iterator[list[Row]]:
    rows = (row for row in file.rows() if row.number > after)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _tried(job: ImportJob, importer: Importer, rows: Sequence[Row], *, rules: bool) -> list[Draft]:
    """A chunk, done again where the database undoes it for somebody else's sake."""
    for left in reversed(range(TRIES)):
        try:
            return _chunk(job, importer, rows, rules=rules)
        except DatabaseError:
            if not left:
                raise
            time.sleep(0.1)
    raise AssertionError("unreachable")


def _chunk(job: ImportJob, importer: Importer, rows: Sequence[Row], *, rules: bool) -> list[Draft]:
    with transaction.atomic():
        if job.pk is not None:
            _hold(job)
        with importing(job.batch, rules=rules):
            drafts = importer.work(rows)
        counts = Counter(draft.outcome for draft in drafts)
        after = {name: getattr(job, name) + counts[name] for name in OUTCOMES} | {"rows_done": rows[-1].number}
        if job.pk is None:
            transaction.set_rollback(True)
            for draft in drafts:
                draft.record = None if draft.outcome == CREATED else draft.record
        else:
            ImportedRow.objects.bulk_create([_row(job, draft) for draft in drafts])
            ImportJob.objects.filter(pk=job.pk).update(**after)
    for name, value in after.items():
        setattr(job, name, value)
    return drafts


def _hold(job: ImportJob) -> None:
    """Locks the job for this chunk; one that has moved on is at work elsewhere."""
    now = ImportJob.objects.select_for_update(no_key=True).filter(pk=job.pk).values_list("rows_done", "finished_at")
    if now.first() != (job.rows_done, None):
        raise ImportRefused(_("Another process is at this import: it is past row %(row)s.") % {"row": job.rows_done})


def _row(job: ImportJob, draft: Draft) -> ImportedRow:
    return ImportedRow(
        job=job,
        number=draft.row.number,
        line=draft.row.line,
        outcome=draft.outcome,
        record=None if draft.outcome == REJECTED else draft.record,
        problems=draft.problems,
    )


def _finish(job: ImportJob) -> None:
    with transaction.atomic():
        if not ImportJob.objects.filter(pk=job.pk, finished_at=None, rows_done=job.rows_done).update(finished_at=Now()):
            raise ImportRefused(_("Another process has ended this import."))
        after = {name: getattr(job, name) for name in ("rows_done", *OUTCOMES)}
        audit.record("import.finished", f"import:{job.pk}", tenant_id=job.tenant_id, after=after)
    job.refresh_from_db()
