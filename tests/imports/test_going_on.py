"""An import goes on where it stopped, is done once, and never twice at a time."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.models.functions import Now

from automation.engine.retention import rounds
from automation.engine.retention.rounds import round_of
from northwind.helpdesk.models import Ticket
from northwind.imports import jobs
from northwind.imports.chunk import Importer
from northwind.imports.models import ImportedRow, ImportJob
from northwind.imports.retention import drop_reports
from tenants.context import every_tenant
from tests.factories import TenantFactory
from tests.imports.desk import Desk

ROWS = 1500  # enough to be stopped amid them


class Cut(Exception):
    """The process is gone."""


def cut_off(monkeypatch: pytest.MonkeyPatch, *, chunk: int) -> None:
    """The import dies while it works on that chunk."""
    work, done = Importer.work, [0]

    def dying(importer: Importer, rows: Any) -> Any:
        drafts = work(importer, rows)
        done[0] += 1
        if done[0] == chunk:
            raise Cut
        return drafts

    monkeypatch.setattr(Importer, "work", dying)


def many(desk: Desk, count: int = 450) -> Path:
    return desk.write("subject", *[[f"Ticket {number}"] for number in range(count)])


def subjects(desk: Desk) -> list[str]:
    with desk.acting():
        return sorted(Ticket.objects.values_list("subject", flat=True), key=lambda one: int(one.split()[1]))


def test_the_same_command_goes_on_after_the_last_row_that_was_committed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many(desk)
    with monkeypatch.context() as patched:
        cut_off(patched, chunk=2)
        with pytest.raises(Cut):
            desk.command("tickets", path)
    assert len(subjects(desk)) == 200
    moved = path.rename(path.with_name("elsewhere.csv"))
    desk.command("tickets", moved, f"--report={desk.folder}/report.csv", "--json")
    assert "Going on after row 200 of 450." in desk.told
    assert subjects(desk) == [f"Ticket {number}" for number in range(450)]
    assert [int(row["row"]) for row in desk.report()] == list(range(1, 451))
    counts = {"rows": 450, "created": 450, "updated": 0, "unchanged": 0, "rejected": 0}
    assert json.loads(desk.said).items() >= counts.items()
    with desk.acting():
        assert ImportJob.objects.get().finished_at is not None


def test_a_file_is_imported_once_unless_it_is_said_again(desk: Desk) -> None:
    path = many(desk, 3)
    desk.command("tickets", path)
    assert "was imported already, as batch “tickets-" in desk.command("tickets", path, code=1)
    desk.command("tickets", path, f"--report={desk.folder}/report.csv")
    assert len(desk.report()) == 3
    desk.command("tickets", path, "--again")
    assert len(subjects(desk)) == 6
    with desk.acting():
        assert len(set(ImportJob.objects.values_list("batch", flat=True))) == 2
    # Another tenant's import of the same file is its own.
    desk.tenant = TenantFactory()
    desk.command("tickets", path)
    assert len(subjects(desk)) == 3


def test_it_is_not_gone_on_with_in_another_way_than_it_was_begun(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = many(desk)
    with monkeypatch.context() as patched:
        cut_off(patched, chunk=1)
        with pytest.raises(Cut):
            desk.command("tickets", path, "--rules=skip", "--batch=mine")
    for other in ("--rules=run", "--create-missing", "--batch=other"):
        assert "It was begun as batch “mine” with other options" in desk.command("tickets", path, other, code=1)
    desk.command("tickets", path)
    with desk.acting():
        job = ImportJob.objects.get()
    assert (job.batch, job.options["rules"], job.created) == ("mine", False, 450)


def test_reports_of_long_ago_go_with_a_round_of_retention_and_counts_stay(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Desk(desk.folder, TenantFactory())
    for each in (desk, other):
        each.command("tickets", many(each, 5))
    with desk.acting():
        ImportJob.objects.update(finished_at=Now() - timedelta(days=91))
    with other.acting():
        ImportJob.objects.update(finished_at=None, started_at=Now() - timedelta(days=91))  # left lying
    desk.command("tickets", desk.write("subject", ["Ticket 5"]))
    monkeypatch.setattr(rounds, "PAGE", 2)
    with every_tenant():
        removed = [one.removed["imported rows"] for one in round_of(desk.tenant.pk) if "imported rows" in one.removed]
    assert removed == [2, 2, 1]
    with desk.acting():
        assert [job.rows.count() for job in ImportJob.objects.order_by("id")] == [0, 1]
        assert ImportJob.objects.order_by("id")[0].created == 5
    with other.acting():
        assert ImportedRow.objects.count() == 5
    with every_tenant():
        list(round_of(other.tenant.pk))
    with other.acting():
        assert ImportedRow.objects.count() == 0


def test_how_long_reports_are_kept_is_a_setting(desk: Desk, settings: Any) -> None:
    desk.command("tickets", many(desk, 3))
    settings.IMPORT_REPORTS_DAYS = 400
    with desk.acting():
        ImportJob.objects.update(finished_at=Now() - timedelta(days=399))
        assert drop_reports(desk.tenant.pk, limit=10) == 0
        ImportJob.objects.update(finished_at=Now() - timedelta(days=401))
        assert drop_reports(desk.tenant.pk, limit=10) == 3


def test_an_import_that_moves_on_elsewhere_is_left_to_whoever_does(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path, hold = many(desk), jobs._hold

    def late(job: ImportJob) -> None:
        if job.rows_done:
            ImportJob.objects.update(rows_done=job.rows_done + 7)
        hold(job)

    monkeypatch.setattr(jobs, "_hold", late)
    assert "Another process is at this import: it is past row 200." in desk.command("tickets", path, code=1)
    assert len(subjects(desk)) == 200


@pytest.mark.django_db(transaction=True)
def test_two_at_once_import_each_row_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path, said = many(desk, 1000), list[str]()

    def one() -> None:
        try:
            other = Desk(tmp_path, desk.tenant)
            try:
                said.append(other.command("tickets", path))
            except AssertionError as error:
                said.append(str(error))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(subjects(desk)) < 1000:
        desk.command("tickets", path)
    assert subjects(desk) == [f"Ticket {number}" for number in range(1000)]
    assert said.count("") <= 1
    with desk.acting():
        assert ImportJob.objects.count() == 1
        assert ImportedRow.objects.count() == 1000


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, marks=pytest.mark.long),
    ],
)
def test_a_process_that_is_stopped_leaves_nothing_half_done(tmp_path: Path, database_url: str, number: int) -> None:
    desk = Desk(tmp_path)
    path = many(desk, ROWS)
    command = [sys.executable, "manage.py", "import_tickets", str(path), f"--tenant={desk.tenant.slug}"]
    environment = {**os.environ, "DATABASE_URL": database_url}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with desk.acting():
        while process.poll() is None and not ImportJob.objects.filter(rows_done__gt=0).exists():
            pass
    process.send_signal(number)
    said = process.communicate(timeout=60)[0]
    with desk.acting():
        done = ImportJob.objects.get().rows_done
        assert Ticket.objects.count() == ImportedRow.objects.count() == done
    if number != signal.SIGKILL and done < ROWS:
        assert process.returncode == 130, said
        assert f"Stopped after row {done} of {ROWS}: the same command goes on there." in said
    if done < ROWS:
        desk.command("tickets", path)
    assert subjects(desk) == [f"Ticket {number}" for number in range(ROWS)]
