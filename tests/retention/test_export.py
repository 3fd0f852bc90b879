"""A tenant's data can be taken along whole, without anybody else's and without secrets."""

import csv
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from factories import CustomerFactory, LeadFactory, TicketFactory
from hypothesis import given
from hypothesis import strategies as st
from operating import Place, make_rule
from operating import place as new_place

from automation.core.cells import safe
from automation.engine.retention.export import export
from automation.engine.retention.tables import owned
from automation.models import Connection, Event
from tenants.context import acting_for
from tenants.models import AuditEntry
from tests.retention.aged import old_run

SECRET = "whsec_never-to-be-seen"


def furnish(place: Place, word: str) -> None:
    with acting_for(place.tenant.pk, place.actor):
        customer = CustomerFactory(
            tenant=place.tenant, name=f"=HYPERLINK({word})", phone="+49 170 1", email=f"{word}@x.example"
        )
        TicketFactory(
            tenant=place.tenant, subject=f"{word}, “quoted”\nand two lines", tags=["a", "b"], customer=customer
        )
        LeadFactory(tenant=place.tenant, value="-12.50")
        hook = Connection(tenant=place.tenant, name="hook", kind="webhook", endpoint="https://x.example")
        hook.set_secret(SECRET)
        hook.save()
        old_run(make_rule(place.tenant), 1)


def unpacked(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.django_db
def test_every_table_is_in_it_and_nothing_of_another_tenant(acme: Place):
    furnish(acme, "mine")
    other = new_place(slug="other")
    furnish(other, "theirs")
    target = io.BytesIO()
    counts = export(acme.tenant, target)
    files = unpacked(target.getvalue())
    assert set(files) == {f"{table.name}.jsonl" for table in owned()} | {"people.jsonl", "manifest.json"}
    assert json.loads(files["manifest.json"])["rows"] == counts
    for name, text in files.items():
        assert "theirs" not in text
        assert SECRET not in text
        assert "password" not in text
        if name not in ("manifest.json", "people.jsonl"):
            assert len(lines(text)) == counts[name.removesuffix(".jsonl")]
    ticket = lines(files["helpdesk.ticket.jsonl"])[0]
    assert (ticket["tags"], ticket["subject"]) == (["a", "b"], "mine, “quoted”\nand two lines")
    event = lines(files["automation.event.jsonl"])[-1]
    assert event["facts"] == Event.objects.get(pk=event["id"]).facts
    assert lines(files["crm.lead.jsonl"])[0]["value"] == "-12.50"
    assert lines(files["people.jsonl"])[0]["first_name"] == "Ana"
    assert "secret_encrypted" not in lines(files["automation.connection.jsonl"])[0]
    assert AuditEntry.objects.get(verb="export").target == f"tenant:{acme.tenant.pk}"


@pytest.mark.django_db
def test_no_cell_of_a_csv_is_run_by_a_spreadsheet(acme: Place):
    furnish(acme, "mine")
    target = io.BytesIO()
    export(acme.tenant, target, form="csv")
    files = unpacked(target.getvalue())
    customer = next(csv.DictReader(io.StringIO(files["helpdesk.customer.csv"])))
    assert customer["name"] == "'=HYPERLINK(mine)"
    assert customer["phone"] == "'+49 170 1"
    assert next(csv.DictReader(io.StringIO(files["crm.lead.csv"])))["value"] == "-12.50"  # a number
    ticket = next(csv.DictReader(io.StringIO(files["helpdesk.ticket.csv"])))
    assert ticket["subject"] == "mine, “quoted”\nand two lines"
    assert json.loads(ticket["tags"]) == ["a", "b"]
    for name, text in files.items():
        if name.endswith(".csv"):
            rows = list(csv.reader(io.StringIO(text)))
            assert len({len(row) for row in rows}) == 1


@given(st.text())
def test_a_safe_cell_begins_with_nothing_that_is_run(text: str):
    found = safe(text)
    assert found in (text, f"'{text}")
    assert not found or (found[0] not in "=+-@\t\r\n\x00" and ord(found[0]) >= 32)


@pytest.mark.django_db
def test_a_large_table_is_written_without_holding_it(acme: Place):
    for start in range(0, 6000, 1000):
        Event.objects.bulk_create(
            Event(tenant=acme.tenant, kind="custom_event", name=f"e{n}", source="api", facts={"data": {"t": "x" * 500}})
            for n in range(start, start + 1000)
        )

    tracemalloc.start()
    try:
        with Path(os.devnull).open("wb") as target:
            export(acme.tenant, target)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.django_db
def test_the_command_writes_a_file_that_only_its_owner_reads(acme: Place, tmp_path: Path, capsys: Any):
    furnish(acme, "mine")
    path = tmp_path / "acme.zip"
    call_command("automation_export", "--tenant", "acme", "--to", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "rows of" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]
    assert "helpdesk.ticket.jsonl" in unpacked(path.read_bytes())
    assert "command line" in AuditEntry.objects.get(verb="export").actor_name
    for wrong in (
        ["--tenant", "acme", "--to", str(path)],
        ["--tenant", "nobody", "--to", "x.zip"],
        ["--tenant", "acme", "--to", str(tmp_path / "no" / "x.zip")],
    ):
        with pytest.raises(CommandError):
            call_command("automation_export", *wrong)
