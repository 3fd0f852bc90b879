"""Writes what became of each row as CSV, and the rows that were left out as a file that can be imported again."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from northwind.imports.chunk import REJECTED, Draft
from northwind.imports.files import CsvFile
from northwind.imports.models import ImportedRow, ImportJob

HEADER = ("row", "line", "outcome", "record", "column", "place", "message")
ROWS_AT_ONCE = 2000
Line = tuple[int, int, str, int | None, Sequence[dict[str, Any]]]


class ReportFile:
    """A report being written: one line a row, and one a problem where a row has several."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._stream)
        self._writer.writerow(HEADER)

    def write(self, lines: Iterable[Line]) -> None:
        """Adds rows: (number, line, outcome, record, problems)."""
        for number, line, outcome, record, problems in lines:
            for problem in problems or [{}]:
                more = (problem.get("column", ""), problem.get("place", ""), problem.get("message", ""))
                self._writer.writerow((number, line, outcome, record, *more))

    def __enter__(self) -> "ReportFile":
        return self

    def __exit__(self, *raised: object) -> None:
        self._stream.close()


def of_drafts(drafts: Iterable[Draft]) -> Iterator[Line]:
    """What a report says of rows that were just worked on."""
    for draft in drafts:
        record = None if draft.outcome == REJECTED else draft.record
        yield draft.row.number, draft.row.line, draft.outcome, record, draft.problems


def of_job(job: ImportJob) -> Iterator[Line]:
    """What a report says of all rows of an import, read in portions."""
    after = 0
    while rows := list(ImportedRow.objects.filter(job=job, number__gt=after).order_by("number")[:ROWS_AT_ONCE]):
        for row in rows:
            yield row.number, row.line, row.outcome, row.record, row.problems
        after = rows[-1].number


def write_rejected(job: ImportJob, file: CsvFile, path: Path) -> int:
    """Copies the header and the rows that were left out to a file of their own; answers how many."""
    numbers = ImportedRow.objects.filter(job=job, outcome=REJECTED).order_by("number").values_list("number", flat=True)
    wanted, count = numbers.iterator(chunk_size=ROWS_AT_ONCE), 0
    with path.open("w", encoding=file.encoding, newline="") as stream:
        writer = csv.writer(stream, delimiter=file.delimiter)
        writer.writerow(file.header())
        number = next(wanted, None)
        for row in file.rows():
            if number is None:
                break
            if row.number == number:
                writer.writerow(row.cells)
                count += 1
                number = next(wanted, None)
    return count
