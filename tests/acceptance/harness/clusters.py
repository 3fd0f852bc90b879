"""Real workers: clusters started by `manage.py run_workers`, killed and frozen by the id of their processes."""

import json
import os
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptance.harness.database import Db
from acceptance.harness.nursery import ROOT, Nursery, Started
from acceptance.harness.waiting import until

STARTS_WITHIN = 40.0
SETTINGS = {
    "AUTOMATION_LEASE": "2",
    "AUTOMATION_BEAT": "0.5",
    "AUTOMATION_SWEEP": "0.5",
    "AUTOMATION_DEADLINE": "4",
    "AUTOMATION_STEP_TIMEOUT": "1",
    "AUTOMATION_STEP_TIMEOUT_MAX": "1",
    "AUTOMATION_CONTROL_POLL": "0.2",
    "AUTOMATION_BELL": "1",
    "AUTOMATION_ALLOW_LOOPBACK": "1",
    "AUTOMATION_BREAKERS": "0",  # receivers that fail by order would be spared; tests of breakers turn them on
    "AUTOMATION_TESTS": "1",
    "LOG_FORMAT": "json",
}
LEASE, SWEEP, DEADLINE, STEP_TIMEOUT, CONTROL_POLL, BELL = 2.0, 0.5, 4.0, 1.0, 0.2, 1.0
T = LEASE + SWEEP  # until work of a dead worker is taken back
COUNTED = ("stale_settle", "reaped", "repaired", "healed")


def environment(**more: str) -> dict[str, str]:
    """What a process under test gets: the settings of tests, and what this test changes."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "acceptance.harness.settings",
        "PYTHONPATH": path.rstrip(os.pathsep),
        **SETTINGS,
        **more,
    }


def group_of(leader: int) -> list[int]:
    """The ids of the processes in a process group, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, _parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == leader and state != "Z":
                    found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    """Whether a process exists and isn't a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def bury(db: Db) -> None:
    """Lets the leases pass at once of workers whose process is gone, where how long that takes isn't the matter."""
    for worker in db.rows("SELECT id, pid FROM automation_worker WHERE expires_at > automation_now()"):
        if not alive(worker["pid"]):
            db.run("UPDATE automation_worker SET expires_at = automation_now() WHERE id = %s", worker["id"])


@dataclass
class Cluster:
    """One `run_workers` with its log; `fail` arms failpoints in all of its workers."""

    db: Db
    nursery: Nursery
    log: Path
    workers: int = 2
    pool: str = "northwind"
    fail: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    process: Started = field(init=False)

    def start(self, *, wait: bool = True) -> "Cluster":
        """Starts it and waits until every pump is there."""
        more = {"WORKERS": str(self.workers), **self.settings}
        if self.pool != "northwind":
            more["Q_CLUSTER_NAME"] = self.pool
        if self.fail:
            more["AUTOMATION_FAIL"] = self.fail
        self.log.touch()
        self.process = self.nursery.start(["manage.py", "run_workers"], environment(**more), self.log)
        if wait:
            self.wait_for_pumps()
        return self

    def wait_for_pumps(self, count: int | None = None, *, within: float = STARTS_WITHIN) -> list[int]:
        """The pumps, once so many are there."""
        wanted = self.workers if count is None else count
        return until(
            lambda: found if len(found := self.pumps()) == wanted else None,
            within=within,
            about=f"{wanted} pumps in {self.pool}",
            told=lambda: f"{self.pumps()}\n{self.tail()}",
        )

    def pumps(self) -> list[int]:
        """The ids of the processes that run a pump."""
        own = set(group_of(self.process.pid))
        found = self.db.rows(
            "SELECT pid FROM automation_worker WHERE expires_at > automation_now() ORDER BY started_at, pid"
        )
        return [one["pid"] for one in found if one["pid"] in own]

    def worker_of(self, pid: int) -> Any:
        """The id under which a process works."""
        return self.db.value("SELECT id FROM automation_worker WHERE pid = %s ORDER BY started_at DESC", pid)

    def kill(self, pid: int) -> None:
        """SIGKILL for one of this cluster's own processes."""
        self.signal(pid, signal.SIGKILL)
        until(lambda: not alive(pid), within=10, about=f"the end of {pid}")

    def freeze(self, pid: int) -> None:
        """SIGSTOP."""
        self.signal(pid, signal.SIGSTOP)

    def thaw(self, pid: int) -> None:
        """SIGCONT."""
        self.signal(pid, signal.SIGCONT)

    def signal(self, pid: int, number: int) -> None:
        """Sends a signal to one of this cluster's own processes, never to another's."""
        assert os.getpgid(pid) == self.process.pid, f"{pid} isn't of this cluster"
        os.kill(pid, number)

    def ask_to_stop(self) -> None:
        """What a supervisor sends."""
        os.kill(self.process.pid, signal.SIGTERM)

    def end(self) -> None:
        """Kills every process of the cluster, as when its machine dies."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGSTOP)  # it must not start others meanwhile
        while own := group_of(self.process.pid):
            for pid in own:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
        self.process.wait(10)

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """The structured lines of its log, all or those of one name."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                with suppress(ValueError):
                    found.append(json.loads(line))
        return [one for one in found if not event or one.get("event") == event]

    def counters(self) -> Counter[str]:
        """How much of each counter was logged."""
        counted: Counter[str] = Counter()
        for line in self.lines():
            if line.get("event") in COUNTED:
                counted[line["event"]] += int(line.get("count", 1))
        return counted

    def alarms(self) -> list[str]:
        """What alarms were raised."""
        return [str(line.get("what")) for line in self.lines("alarm")]

    def tail(self, lines: int = 40) -> str:
        """The end of its log, for a test that failed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
