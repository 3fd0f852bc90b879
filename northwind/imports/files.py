"""Reads a CSV file row by row, and says at which line and column it is broken."""

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _

LONGEST_LINE = 1_000_000  # characters: what is held in memory of a file that isn't one of lines
BLOCK = 1 << 20


class FileProblem(ValueError):
    """Why a file can't be read: `line` counts from 1 (0 for the file as a whole), `column` in characters or cells."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        self.line, self.column, self.message = line, column, message
        places = {"line": line, "column": column, "message": message}
        if column:
            message = _("Line %(line)s, column %(column)s: %(message)s") % places
        elif line:
            message = _("Line %(line)s: %(message)s") % places
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Row:
    """A row below the header: its number from 1, the line on which it begins, and its cells."""

    number: int
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file of rows under one header, never held in memory as a whole."""

    path: Path
    encoding: str = "utf-8-sig"
    delimiter: str = ","

    def digest(self) -> str:
        """The SHA-256 of its bytes: what the file is known by, wherever it lies."""
        found = hashlib.sha256()
        with self._opened() as stream:
            while block := stream.read(BLOCK):
                found.update(block)
        return found.hexdigest()

    def size(self) -> int:
        """Its bytes."""
        with self._opened() as stream:
            return stream.seek(0, SEEK_END)

    def count(self) -> int:
        """How many rows it has; reads all of it, so a `FileProblem` anywhere comes out here."""
        return sum(1 for _row in self.rows())

    def header(self) -> tuple[str, ...]:
        """The names of the columns as written; FileProblem for a file without any."""
        for _line, cells in self._records():
            return tuple(cells)
        raise FileProblem(_("The file is empty: its first line names the columns."))

    def rows(self) -> Iterator[Row]:
        """The rows in their order; empty lines aren't rows. FileProblem where it can't be read on."""
        records = self._records()
        next(records, None)
        for number, (line, cells) in enumerate(records, start=1):
            yield Row(number, line, tuple(cells))

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        try:
            with self.path.open(encoding=self.encoding, newline="") as stream:
                yield from self._parsed(stream)
        except OSError as error:
            raise FileProblem(_("The file can't be read: %(error)s") % {"error": error.strerror or error}) from error
        except LookupError as error:
            raise FileProblem(_("There is no encoding “%(name)s”.") % {"name": self.encoding}) from error
        except UnicodeError as error:
            raise self._undecodable() from error

    def _parsed(self, stream: IO[str]) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(_lines(stream), delimiter=self.delimiter, strict=True)
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            message = _("The row that begins here is broken: %(error)s.") % {"error": error}
            raise FileProblem(message, line=line) from error

    def _undecodable(self) -> FileProblem:
        """Where the first character is that isn't one in the file's encoding."""
        message = _("This isn't text in the encoding %(name)s.") % {"name": self.encoding}
        with self._opened() as stream:
            number = 0
            while raw := stream.readline(LONGEST_LINE):
                number += 1
                try:
                    raw.decode(self.encoding)
                except UnicodeError as error:
                    return FileProblem(message, line=number, column=self._column(raw, error))
        return FileProblem(message)

    def _column(self, raw: bytes, error: UnicodeError) -> int:
        """The place of the character in its line; 0 where its encoding can't tell."""
        if not isinstance(error, UnicodeDecodeError):
            return 0
        try:
            return len(raw[: error.start].decode(self.encoding)) + 1
        except UnicodeError:
            return 0

    def _opened(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise FileProblem(_("The file can't be read: %(error)s") % {"error": error.strerror or error}) from error


def _lines(stream: IO[str]) -> Iterator[str]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            message = _("A line has at most %(longest)s characters.") % {"longest": LONGEST_LINE}
            raise FileProblem(message, line=number)
        yield line
