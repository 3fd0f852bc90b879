"""The demo as a person meets it: it starts, answers, runs rules, and stops with everything it started."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

from northwind.process_tree import ROOT
from northwind.seed.fill import PASSWORD

pytestmark = pytest.mark.acceptance
READY = "Ctrl-C stops all of it."
TWO_HOURS = """
SELECT x.id FROM automation_timer x JOIN automation_stepexecution s ON s.id = x.step_id
 WHERE x.kind = 'delay' AND x.due_at - s.started_at BETWEEN interval '19 seconds' AND interval '21 seconds'
"""
HURRY = """
WITH hurried AS (UPDATE automation_timer SET due_at = automation_now() WHERE id = ANY(%s) RETURNING lane_id)
SELECT automation_lane_due(lane_id, automation_now()) FROM hurried
"""


class Demo:
    """A demo that runs."""

    def __init__(self, url: str | None, data: Path) -> None:
        self.data = data
        environment = {**os.environ, "DATA_DIR": str(data), "DATABASE_URL": url or ""}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "demo"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if READY in line:
                break

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def address(self, before: str) -> str:
        found = re.search(rf"{before} is at (http://\S+?)/", self.text)
        assert found, self.text
        return found.group(1)

    def rest(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def parts(self) -> list[int]:
        """The ids of the processes that it has started."""
        found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = [line.split() for line in found.splitlines()]
        return [int(pid) for pid, parent in pairs if parent == str(self.process.pid)]


@pytest.fixture
def demo(database_url: str, tmp_path: Path) -> Iterator[Demo]:
    running = Demo(database_url, tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGTERM)
        running.rest()
    running.process.wait(90)
    if running.process.stdout is not None:
        running.process.stdout.close()


def until(reached: Callable[[], bool], *, seconds: float = 60.0) -> None:
    ends_at = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < ends_at
        time.sleep(0.1)


def logged_in(web: str, name: str) -> urllib.request.OpenerDirector:
    cookies = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    browser.open(f"{web}/accounts/login/").close()
    token = next(cookie.value for cookie in cookies if cookie.name == "csrftoken")
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    browser.open(f"{web}/accounts/login/", urlencode(form).encode()).close()
    return browser


def test_it_starts_answers_runs_rules_and_stops_with_all_that_it_started(demo, database_url):
    web, outside = demo.address("Northwind"), demo.address("What arrives outside")
    assert "ana@acme" in demo.text
    assert re.search(r"Tenant +Role +User name +Page\n +\(all\) +staff +admin +http", demo.text)
    parts = demo.parts()
    assert len(parts) >= 8, "six receivers and pages, web, workers, and the guardian"

    with logged_in(web, "ana@acme").open(f"{web}/t/acme/") as page:
        assert page.status == 200
        assert "Acme Retail" in page.read().decode()

    pages = demo.data / "ledgers" / "pager.jsonl"
    until(lambda: pages.exists() and "Delivery 4471" in pages.read_text())
    assert json.loads(pages.read_text().splitlines()[0])["shown"]
    with urllib.request.build_opener().open(outside) as page:
        assert "pager" in page.read().decode()
    # A wait of two hours takes twenty seconds; they pass at once here.
    with psycopg.connect(database_url, autocommit=True) as connection:
        until(lambda: connection.execute(TWO_HOURS).fetchone() is not None)
        connection.execute(HURRY, [[row[0] for row in connection.execute(TWO_HOURS)]])
    messages = demo.data / "ledgers" / "sms.jsonl"
    until(lambda: "did our mail reach you" in messages.read_text())

    demo.process.send_signal(signal.SIGINT)
    assert demo.rest().rstrip().endswith("Stopped.")
    assert demo.process.wait(90) == 0
    assert not [part for part in parts if Path(f"/proc/{part}").exists()]


def test_a_second_one_on_its_database_is_refused_and_it_ends_with_an_error_when_a_part_dies(
    demo, database_url, tmp_path
):
    second = Demo(database_url, tmp_path / "second")
    assert second.process.wait(60) == 1
    assert "A demo runs on this database already." in second.text
    assert second.process.stdout is not None
    second.process.stdout.close()

    parts = demo.parts()
    victim = next(part for part in parts if "northwind.loopback\0sms" in Path(f"/proc/{part}/cmdline").read_text())
    os.kill(victim, signal.SIGKILL)
    assert "sms ended with -9" in demo.rest()
    assert demo.process.wait(90) == 1
    assert not [part for part in parts if Path(f"/proc/{part}").exists()]


@pytest.mark.long  # makes a database of its own
def test_it_ends_with_an_error_when_its_database_dies(tmp_path_factory):
    data = tmp_path_factory.mktemp("nw")
    demo = Demo(None, data)
    (server,) = (int(path.read_text().split()[0]) for path in data.rglob("postmaster.pid"))
    parts = [part for part in demo.parts() if part != server]
    os.kill(server, signal.SIGKILL)
    assert "the database ended" in demo.rest()
    assert demo.process.wait(90) == 1
    assert demo.process.stdout is not None
    demo.process.stdout.close()
    assert not [part for part in parts if Path(f"/proc/{part}").exists()]
