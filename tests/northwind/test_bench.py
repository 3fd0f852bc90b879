"""The benches: how they report, and that each runs on a small scale."""

import json
import os
import subprocess
import sys

import pytest

from northwind.bench.result import Bar, Measured, Report, percentile
from northwind.management.commands.bench import NAMES
from northwind.process_tree import ROOT


def test_a_report_has_the_agreed_names():
    report = Report("local", 4000.0, Measured({"steps_per_s": 2000.0}, rate=2000.0))
    assert report.to_json() == {
        "name": "local",
        "floor_per_s": 4000.0,
        "ratio_to_floor": 0.5,
        "figures": {"steps_per_s": 2000.0, "first_bar_reached": True},
    }


def test_a_ratio_that_has_no_meaning_is_null():
    measured = Measured({"p50_ms": 120.0}, [Bar("p50, ms", 120.0, 100, 15)])
    found = Report("latency", 4000.0, measured).to_json()
    assert found["ratio_to_floor"] is None
    assert found["figures"]["first_bar_reached"] is False


def test_a_bar_is_a_ceiling_or_a_floor():
    assert Bar("wait", 1.0, 1.0, 0.5).reached
    assert not Bar("rate", 0.1, 0.2, 0.6, at_most=False).reached
    assert "NOT reached" in str(Bar("wait", 2.0, 1.0, 0.5))


def test_percentiles_are_values_that_were_seen():
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([], 99) == 0.0


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "name", [name if name == "local" else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_each_bench_runs_on_a_small_scale(name, database_url):
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", name, "--json", "--scale", "0.02"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"name", "floor_per_s", "ratio_to_floor", "figures"}
    assert found["floor_per_s"] > 0
    assert (found["ratio_to_floor"] is None) == (name not in ("outside", "local"))
