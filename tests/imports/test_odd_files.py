"""Whatever a file says, an import takes a row or says why not; it never falls over."""

import codecs
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from northwind.imports.chunk import Importer
from northwind.imports.files import CsvFile, FileProblem, Row
from northwind.imports.leads import LEADS
from northwind.imports.target import Target
from northwind.imports.tickets import TICKETS
from tests.imports.desk import Desk

LOOSE = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ODD = [
    "0",
    "-1",
    "1e400",
    "NaN",
    "9" * 40,
    "\uff11\uff12",
    "yes",
    "urgent",
    "2026-02-30",
    "9999-12-31T23:59:59-14:00",
    "a@b.de",
]
CELLS = st.one_of(st.sampled_from(ODD), st.text(max_size=60), st.text(min_size=190, max_size=300))


@LOOSE
@given(
    content=st.one_of(st.binary(max_size=300), st.text(alphabet='a",;\r\n\t\0é', max_size=200).map(str.encode)),
    encoding=st.sampled_from(["utf-8-sig", "cp1252", "utf-16", "utf-7", "ascii", "hex", "idna", "none", "x y"]),
    delimiter=st.sampled_from([",", ";", "\t"]),
)
@example(content=codecs.BOM_UTF16_LE + "a\nb".encode("utf-16-le"), encoding="utf-16", delimiter=",")
@example(content=b'"\n', encoding="utf-8-sig", delimiter=",")
def test_a_file_is_read_or_said_to_be_broken(tmp_path: Path, content: bytes, encoding: str, delimiter: str) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    file = CsvFile(path, encoding, delimiter)
    try:
        rows = list(file.rows())
    except FileProblem:
        return
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert all(one.line < other.line for one, other in pairwise(rows))


@LOOSE
@pytest.mark.parametrize(
    ("target", "key"), [(TICKETS, "id"), (LEADS, "id"), (LEADS, "email")], ids=["tickets", "leads", "leads by address"]
)
@given(data=st.data())
def test_a_row_is_taken_or_said_why_not(desk: Desk, target: Target, key: str, data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.sampled_from(target.columns), min_size=1, unique_by=lambda one: one.name))
    layout = [column for column in columns if key == "id" or column.name != "id"]
    cells = st.lists(st.tuples(*(CELLS for _ in layout)), min_size=1, max_size=6)
    rows = [Row(number, number + 1, row) for number, row in enumerate(data.draw(cells), start=1)]
    with desk.acting():
        importer = Importer(target, layout, key, desk.tenant.zone, create_missing=data.draw(st.booleans()))
        drafts = importer.work(rows)
        count = target.model.objects.count()
    assert {draft.outcome for draft in drafts} <= {"created", "updated", "unchanged", "rejected"}
    assert all((draft.outcome == "rejected") == bool(draft.problems) for draft in drafts)
    assert count >= sum(draft.outcome == "created" for draft in drafts)
