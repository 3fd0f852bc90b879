"""A file is read row by row, and where it is broken is said by line and column."""

import tracemalloc
from pathlib import Path

import pytest

from northwind.imports.files import CsvFile, FileProblem, Row


def file(folder: Path, content: str | bytes, **options: str) -> CsvFile:
    path = folder / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CsvFile(path, **options)


def test_rows_know_their_number_and_the_line_they_begin_on(tmp_path: Path) -> None:
    rows = file(tmp_path, '\ufeffname,text\r\na,"two\r\nlines"\r\n\r\nb,\r\n')
    assert rows.header() == ("name", "text")
    assert list(rows.rows()) == [Row(1, 2, ("a", "two\r\nlines")), Row(2, 5, ("b", ""))]
    assert rows.count() == 2


def test_other_delimiters_and_encodings(tmp_path: Path) -> None:
    rows = file(tmp_path, "name;text\nMüller;ok\n".encode("cp1252"), encoding="cp1252", delimiter=";")
    assert list(rows.rows()) == [Row(1, 2, ("Müller", "ok"))]


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b"name\nok\nM\xfcller,\n", 3, 2),
        ("name\nok\n√√".encode() + b"\xff\n", 3, 3),
        (b'name\n"open\nand never closed\n', 2, 0),
        (b'name\nok\n"a"b\n', 3, 0),
        (b"name\n" + b"x" * 1_000_001 + b"\n", 2, 0),
        (b'name\n"' + b"x" * 200_000 + b'"\n', 2, 0),
    ],
    ids=["encoding", "after wide characters", "open quote", "after a quote", "long line", "long cell"],
)
def test_a_broken_file_says_where(tmp_path: Path, content: bytes, line: int, column: int) -> None:
    with pytest.raises(FileProblem, match=f"^Line {line}") as problem:
        file(tmp_path, content).count()
    assert (problem.value.line, problem.value.column) == (line, column)


def test_a_file_that_is_not_there_and_an_encoding_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="No such file"):
        CsvFile(tmp_path / "none.csv").count()
    with pytest.raises(FileProblem, match="Is a directory"):
        CsvFile(tmp_path).digest()
    with pytest.raises(FileProblem, match="no encoding"):
        file(tmp_path, "a\n", encoding="utf-9").count()
    with pytest.raises(FileProblem, match="empty"):
        file(tmp_path, "").header()


def test_a_large_file_needs_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        big = file(tmp_path, "name,text\n" + "somebody,something that goes on\n" * rows)
        tracemalloc.start()
        big.digest()
        assert big.count() == rows
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(100_000) < peak(50_000) * 1.2


def test_the_digest_is_of_the_content_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name\n")
    (tmp_path / "b.csv").write_text("name\n")
    assert CsvFile(tmp_path / "a.csv").digest() == CsvFile(tmp_path / "b.csv").digest()
