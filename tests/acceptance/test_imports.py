"""A tenant that imports a lot keeps nobody else waiting, and what it imports runs within its own share."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from acceptance.harness.clusters import ROOT, alive, environment
from acceptance.harness.scenario import Site, note, webhook
from acceptance.harness.waiting import measured, until
from acceptance.harness.world import World

from automation.extend import importing
from northwind.helpdesk.models import Ticket

pytestmark = pytest.mark.acceptance


def waits_of(site: Site, tickets: list[int], *, while_: Callable[[], bool]) -> list[float]:
    """How long each change of another tenant's people waits for its rule, while something goes on."""
    waits: list[float] = []
    for ticket in tickets:
        if not while_():
            break
        before = len(site.runs())
        site.change(ticket, priority="urgent")
        waits.append(measured(lambda before=before: len(site.runs()) > before, within=20))
    return waits


@pytest.mark.case("F01")
@pytest.mark.fault(48)
@pytest.mark.parametrize("events", [600, pytest.param(10_000, marks=pytest.mark.long)])
def test_one_event_of_a_small_tenant_overtakes_the_thousands_of_another(world: World, events: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "20")
    noisy, other = world.site(), world.site()
    noisy.connect(hook.url)
    noisy.rule([webhook()])
    other.rule([note()])
    theirs, ours = noisy.tickets(events), other.tickets(10)
    noisy.change_all(theirs, priority="high")
    world.cluster(2)
    until(lambda: len(noisy.runs()) > 0, within=30, about="the backlog's first run", told=world.tails)
    waits = waits_of(other, ours, while_=lambda: not noisy.ended(events))

    assert len(waits) == 10, "the backlog was worked off before the small tenant was measured"
    assert max(waits) <= 1, waits
    until(lambda: noisy.ended(events), within=400, about="the backlog's end", told=world.tails)
    assert max(entry["running"] for entry in hook.entries()) <= 4
    assert world.observer.most_running[other.id] <= 4
    world.check()


@pytest.mark.case("F05")
@pytest.mark.parametrize("rows", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_an_import_runs_for_what_really_changes_and_keeps_nobody_waiting(
    world: World, tmp_path: Path, rows: int
) -> None:
    hook = world.server("webhooks", "--delay-ms", "50")
    importer, other = world.site(), world.site()
    importer.connect(hook.url)
    each = importer.rule([webhook()], fields=["status"])
    once = importer.rule([note()], fields=["status"], imports="once")
    other.rule([note()])
    theirs, ours = importer.tickets(rows, status="open"), other.tickets(40)
    path = tmp_path / "tickets.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "status"])
        writer.writerows([number, "pending" if place < 100 else "open"] for place, number in enumerate(theirs))
    world.cluster(2)
    command = [sys.executable, "manage.py", "import_tickets", str(path), "--rules=run"]
    process = subprocess.Popen(
        [*command, f"--tenant={importer.tenant.slug}"],
        cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    waits = waits_of(other, ours, while_=lambda: process.poll() is None or not importer.ended(101))
    said = process.communicate(timeout=120)[0]

    assert process.returncode == 0, said
    assert f"{rows} rows, 0 created, 100 updated, {rows - 100} unchanged, 0 rejected." in said
    until(lambda: importer.ended(101), within=60, about="the import's runs", told=world.tails)
    assert len(waits) >= 3
    assert max(waits) <= 1, waits
    assert len(hook.entries()) == 100
    assert max(entry["running"] for entry in hook.entries()) <= 4
    assert [run["state"] for run in importer.runs(f"rule_id = {each}")] == ["succeeded"] * 100
    found = [f"{run['state']} {run['reason']}".strip() for run in importer.runs(f"rule_id = {once}")]
    assert found == ["succeeded", *["suppressed import_skipped"] * 99]
    world.check()


def test_a_rule_that_runs_once_for_an_import_does_so_though_its_matcher_died(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()], fields=["status"], imports="once")
    tickets = site.tickets(60)
    world.cluster(2, pool="spare")
    cluster = world.cluster(1, fail="match.before_commit:kill")
    (pump,) = cluster.pumps()

    with site.acting(), importing("old-system"):
        Ticket.objects.filter(pk__in=tickets).update(status="pending")
    until(lambda: not alive(pump), within=30, about="the worker's death", told=cluster.tail)
    assert not site.runs()
    assert not world.db.value("SELECT count(*) FROM automation_servedbatch")
    site.move_to("spare")
    cluster.end()
    until(lambda: site.ended(1), within=60, about="the run's end", told=world.tails)
    until(lambda: len(site.runs()) == 60, within=60, about="all runs", told=world.tails)

    assert len(hook.entries()) == 1
    found = [(run["record"], run["state"], run["reason"]) for run in site.runs()]
    assert found[0] == (tickets[0], "succeeded", "")
    assert {(state, reason) for _record, state, reason in found[1:]} == {("suppressed", "import_skipped")}
    assert world.db.value("SELECT count(*) FROM automation_servedbatch") == 1
    world.check(reaped=1)
