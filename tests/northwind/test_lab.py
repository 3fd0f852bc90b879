"""The noisy-neighbour experiment: what it says, and that it can fail."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from northwind.lab.figures import Figures, Pages, pages, percentile
from northwind.process_tree import ROOT

GOOD = Figures(
    runs_for_one_change=5,
    suppressed=4,
    pages=Pages(expected=20, shown=20, shown_twice=0),
    waits=(0.01, 0.02, 0.9),
    tickets=2000,
    import_seconds=31.0,
)


def manage(url: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def databases(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()}


def test_it_passes_when_every_promise_is_kept():
    assert GOOD.passed
    assert GOOD.to_json() == {
        "runs_for_one_change": 5,
        "pages": {"expected": 20, "shown": 20, "shown_twice": 0},
        "others_wait_s": {"p50": 0.02, "p95": 0.9, "max": 0.9},
        "import": {"tickets": 2000, "seconds": 31.0},
        "passed": True,
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"runs_for_one_change": 11},
        {"pages": Pages(expected=20, shown=19, shown_twice=0)},
        {"pages": Pages(expected=20, shown=20, shown_twice=1)},
        {"waits": (0.01, 1.01)},
        {"waits": ()},
        {"import_seconds": 120.1},
        {"own_steps": 2000, "on_shared": 1},
    ],
)
def test_it_fails_when_one_is_broken(broken):
    assert not replace(GOOD, **broken).passed


def test_percentiles_are_values_that_were_seen():
    assert [percentile([1.0, 2.0, 3.0, 4.0], percent) for percent in (1, 50, 95, 100)] == [1.0, 2.0, 4.0, 4.0]
    assert percentile([], 50) == 0.0


def test_what_the_pager_showed_counts_and_not_what_the_product_believes(tmp_path: Path):
    ledger = tmp_path / "pager.jsonl"
    shown = [("1", True), ("1", False), ("2", True), ("2", True), ("9", True)]
    lines = [{"shown": seen, "body": {"payload": {"component": f"helpdesk.ticket:{one}"}}} for one, seen in shown]
    ledger.write_text("\n".join(json.dumps(line) for line in lines))
    assert pages(ledger, [1, 2, 3]) == Pages(expected=3, shown=2, shown_twice=1)


@pytest.mark.acceptance
def test_a_small_one_runs_on_real_workers_and_leaves_nothing_behind(database_url):
    done = manage(database_url, "lab", "--tenants", "4", "--tickets", "20", "--every", "1", "--json")
    found = json.loads(done.stdout)
    assert found["runs_for_one_change"] <= 10
    assert found["pages"] == {"expected": 20, "shown": 20, "shown_twice": 0}
    assert found["import"]["tickets"] == 20
    assert (done.returncode == 0) == found["passed"]
    assert "Contoso imports 20 tickets" in done.stderr
    assert not {name for name in databases(database_url) if "_lab_" in name}


@pytest.mark.acceptance
@pytest.mark.long
def test_without_the_guard_a_loop_ends_only_at_its_stop(database_url):
    done = manage(database_url, "lab", "--tenants", "4", "--tickets", "20", "--without", "loop-guard", "--json")
    found = json.loads(done.stdout)
    assert found["runs_for_one_change"] >= 1000
    assert done.returncode == 1


@pytest.mark.acceptance
@pytest.mark.long
def test_without_stable_keys_pages_are_shown_twice(database_url):
    done = manage(database_url, "lab", "--tenants", "4", "--tickets", "20", "--without", "idempotency-keys", "--json")
    found = json.loads(done.stdout)
    assert found["pages"]["shown_twice"] > 0
    assert done.returncode == 1


@pytest.mark.acceptance
@pytest.mark.long
def test_workers_of_ones_own_do_all_of_ones_steps(database_url):
    done = manage(database_url, "lab", "--tenants", "4", "--tickets", "50", "--own-pool", "contoso", "--json")
    assert json.loads(done.stdout)["own_pool"] == {"steps": 50, "on_shared_workers": 0}


@pytest.mark.acceptance
def test_a_scratch_database_of_an_experiment_that_was_killed_is_dropped_by_the_next(database_url):
    code = "from northwind.scratch import scratch_database as s\nwith s('lab') as url: print(url)"
    with psycopg.connect(database_url, autocommit=True) as connection:
        left = f"{connection.info.dbname}_lab_999999999"
        connection.execute(f'CREATE DATABASE "{left}"')
    done = manage(database_url, "shell", "-v", "0", "-c", code)
    assert "_lab_" in done.stdout, done.stderr
    assert not {name for name in databases(database_url) if "_lab_" in name}
