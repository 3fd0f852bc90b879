"""What the commands that import files share: their arguments, progress, and what they say at the end."""

import argparse
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from automation.extend import rules_on_import
from northwind.imports import jobs
from northwind.imports.chunk import REJECTED, Draft
from northwind.imports.files import CsvFile, FileProblem
from northwind.imports.jobs import OUTCOMES, ImportedAlready, ImportRefused, Options, Report
from northwind.imports.models import ImportJob
from northwind.imports.reports import ReportFile, of_drafts, of_job, write_rejected
from northwind.imports.target import Target
from tenants.context import acting_for
from tenants.models import Tenant

LARGE = 20_000_000  # bytes: reading through it takes seconds
EVERY = 2.0  # seconds between two lines of progress
SHOWN = 20  # rows left out that are told on the terminal; the report has all
SOME_REJECTED, STOPPED = 3, 130
WORDS = {"run": "for each row", "skip": "not for imports", "once": "once for the import"}


class ImportCommand(BaseCommand):
    """Exit code 0 when every row was taken, 3 when some were left out, 1 when nothing was begun, 130 when stopped.

    Stopped, killed or failed, the same command goes on at the first row that isn't committed yet.
    """

    target: ClassVar[Target]

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, whose it is, and how it is read."""
        names = ", ".join(column.name for column in self.target.columns)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = f"Columns: {names}. Empty cells leave a new record its default, and one that exists as it is."
        parser.add_argument("file", type=Path, help="CSV whose first line names the columns")
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="whose records they become")
        parser.add_argument("--rules", choices=["run", "skip"], help="whether rules run; asked where any would")
        parser.add_argument("--batch", help="name of the import, for rules and lists (default: made of the file)")
        parser.add_argument("--match", choices=self.target.keys, default="id", help="column that finds a record")
        parser.add_argument(
            "--create-missing", action="store_true", help=f"make what isn't there: {', '.join(self.target.make)}"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would become of each row; keep nothing")
        parser.add_argument("--again", action="store_true", help="import a file that was imported before once more")
        parser.add_argument("--report", type=Path, metavar="FILE", help="CSV that says what became of each row")
        parser.add_argument("--rejected", type=Path, metavar="FILE", help="CSV of the rows left out, to be mended")
        parser.add_argument("--encoding", default="utf-8-sig", help="of the file (default: UTF-8)")
        parser.add_argument("--delimiter", default=",", help="between cells (default: a comma); “tab” for tabs")
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Imports the file, or says why not in one line."""
        tenant = Tenant.objects.filter(slug=options["tenant"], closed_at=None).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        delimiter = "\t" if options["delimiter"] == "tab" else options["delimiter"]
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise CommandError("--delimiter is one character.")
        file = CsvFile(options["file"], options["encoding"], delimiter)
        for path in (options["report"], options["rejected"]):
            _writable(path)
        with acting_for(tenant.pk):
            try:
                self._import(file, tenant, options)
            except (FileProblem, ImportRefused) as problem:
                raise CommandError(str(problem)) from problem
            except KeyboardInterrupt as stop:
                raise CommandError("Stopped before anything was written.", returncode=STOPPED) from stop

    def _import(self, file: CsvFile, tenant: Tenant, options: dict[str, Any]) -> None:
        try:
            job = self._job(file, options)
        except ImportedAlready as already:
            if not (options["report"] or options["rejected"]):
                raise CommandError(f"{already} --report writes its report, --again imports it once more.") from already
            self._write(already.job, file, options)
            return
        if job.rows_done:
            self._tell(f"Going on after row {job.rows_done} of {job.rows_total}.")
        if job.pk is None and options["report"]:
            with ReportFile(options["report"]) as report:
                self._run(job, file, tenant, more=lambda drafts: report.write(of_drafts(drafts)))
        else:
            self._run(job, file, tenant)
        if job.pk is not None:
            self._write(job, file, options)
        self._conclude(job, as_json=options["json"])

    def _run(self, job: ImportJob, file: CsvFile, tenant: Tenant, *, more: Report = lambda drafts: None) -> None:
        progress = _Progress(job, self._tell)

        def report(drafts: Sequence[Draft]) -> None:
            progress.rejected(drafts)
            more(drafts)

        try:
            with _asked_to_stop() as asked:
                jobs.run(job, self.target, file, tenant, tell=lambda _job: progress.tell(asked), report=report)
        except KeyboardInterrupt as stop:
            raise CommandError(f"Stopped {_where(job)}", returncode=STOPPED) from stop
        except DatabaseError as error:
            raise CommandError(f"The database ended it ({_first_line(error)}) {_where(job)}") from error

    def _job(self, file: CsvFile, options: dict[str, Any]) -> ImportJob:
        target = self.target
        if file.size() > LARGE:
            self._tell("Reading through the file first.")
        target.layout(file.header(), key=options["match"])
        digest = file.digest()
        begun = None if options["dry_run"] else jobs.unfinished(target, digest)
        rules = self._whether_rules_run(options["rules"], begun, trying=options["dry_run"])
        given = Options(rules=rules, key=options["match"], create_missing=options["create_missing"])
        batch = options["batch"] or (begun.batch if begun else jobs.batch_name(target, digest))
        if not 0 < len(batch) <= jobs.BATCH_LENGTH:
            raise CommandError(f"The name of a batch has 1 to {jobs.BATCH_LENGTH} characters.")
        if options["dry_run"]:
            return jobs.planned(target, file, given, batch=batch, digest=digest)
        return jobs.begin(target, file, given, batch=batch, again=options["again"])

    def _whether_rules_run(self, said: str | None, begun: ImportJob | None, *, trying: bool) -> bool:
        """What was said, now or when it was begun; CommandError where nobody has and it matters."""
        if said is not None:
            return said == "run"
        if begun is not None:
            return bool(begun.options["rules"])
        rules = rules_on_import(self.target.name)
        if rules:
            names = "; ".join(f"“{rule.name}” ({WORDS.get(rule.imports, rule.imports)})" for rule in rules)
            listening = f"Rules listen to {self.target.kind}: {names}."
            if not trying:
                raise CommandError(f"{listening} Say --rules run or --rules skip.")
            self._tell(listening)
        return True

    def _write(self, job: ImportJob, file: CsvFile, options: dict[str, Any]) -> None:
        """The files that were asked for."""
        if options["report"]:
            with ReportFile(options["report"]) as report:
                report.write(of_job(job))
        if options["rejected"]:
            count = write_rejected(job, file, options["rejected"])
            self._tell(f"{count} rows left out are in {options['rejected']}.")

    def _conclude(self, job: ImportJob, *, as_json: bool) -> None:
        counts = {name: getattr(job, name) for name in OUTCOMES}
        if as_json:
            whole = {
                "import": job.pk,
                "batch": job.batch,
                "rows": job.rows_done,
                **counts,
                "rules": job.options["rules"],
            }
            self.stdout.write(json.dumps(whole))
        else:
            words = ", ".join(f"{count} {name}" for name, count in counts.items())
            done = "Nothing is kept; it would be" if job.pk is None else f"Batch “{job.batch}”"
            self.stdout.write(f"{done}: {job.rows_done} rows, {words}.")
        if job.rejected:
            more = "" if job.pk is None else " --report and --rejected write them to files."
            raise CommandError(f"{job.rejected} rows were left out.{more}", returncode=SOME_REJECTED)

    def _tell(self, text: str) -> None:
        self.stderr.write(text, self.style.NOTICE)
        self.stderr.flush()


class _Progress:
    """Tells how far it is every two seconds, and of the first rows that are left out."""

    def __init__(self, job: ImportJob, say: Callable[[str], None]) -> None:
        self._job, self._say = job, say
        self._begun_at = self._told_at = time.monotonic()
        self._begun_with, self._shown = job.rows_done, 0

    def tell(self, asked: Sequence[int]) -> None:
        """After a chunk. KeyboardInterrupt where somebody asked to stop meanwhile: now nothing is left half done."""
        if asked:
            raise KeyboardInterrupt
        now = time.monotonic()
        if now - self._told_at < EVERY:
            return
        self._told_at = now
        job, pace = self._job, (self._job.rows_done - self._begun_with) / (now - self._begun_at)
        left = (job.rows_total - job.rows_done) / pace
        words = f"{job.rows_done} of {job.rows_total} rows, {pace:.0f} a second, about {left:.0f} s left"
        self._say(f"{words}, {job.rejected} left out" if job.rejected else words)

    def rejected(self, drafts: Sequence[Draft]) -> None:
        """Says why rows are left out, each at its line and column."""
        for draft in (one for one in drafts if one.outcome == REJECTED):
            self._shown += 1
            if self._shown == SHOWN + 1:
                self._say("Further rows that are left out are in the report only.")
            if self._shown > SHOWN:
                return
            for problem in draft.problems:
                name = f" ({problem['column']})" if problem["column"] else ""
                place = f", column {problem['place']}{name}" if problem["place"] else name
                self._say(f"Line {draft.row.line}{place}: {problem['message']}")


def _writable(path: Path | None) -> None:
    """CommandError for a file that can't be written: now, and not when the import is done."""
    try:
        if path is not None:
            path.open("a").close()
    except OSError as error:
        raise CommandError(f"{path} can't be written: {error.strerror or error}") from error


def _where(job: ImportJob) -> str:
    return f"after row {job.rows_done} of {job.rows_total}: the same command goes on there."


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """The signals that asked to stop so far; with the second one it ends at once, as far as it is committed."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
