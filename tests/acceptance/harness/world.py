"""All that a test starts, in one place: it ends every process, and says at the end what must hold."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from acceptance.harness.clusters import COUNTED, Cluster, environment
from acceptance.harness.database import Db
from acceptance.harness.nursery import ROOT, Nursery
from acceptance.harness.observer import Observer
from acceptance.harness.scenario import Site, make_site
from acceptance.harness.waiting import until
from loopback_servers import Server, running

LIVE = "state NOT IN ('succeeded', 'failed', 'cancelled', 'compensated', 'suppressed')"

ONE_RUN = """
SELECT e.id FROM automation_event e WHERE e.tenant_id = (SELECT r.tenant_id FROM automation_rule r WHERE r.id = %s)
   AND ({}) AND (SELECT count(*) FROM automation_run x WHERE x.event_id = e.id AND x.rule_id = %s) <> 1
"""


class World:
    """The test database with its observer, the clusters and the servers of one test."""

    def __init__(self, directory: Path, nursery: Nursery) -> None:
        self.directory = directory
        self.nursery = nursery
        self.db = Db()
        self.observer = Observer()
        self.clusters: list[Cluster] = []
        self.servers: list[Server] = []
        self.checked = False
        self._ends = ExitStack()
        self._deadlocks = self._count_deadlocks()
        self.observer.start()

    def site(self, **lane: Any) -> Site:
        """A tenant; `lane` are columns of its lane, such as max_running or pool."""
        return make_site(self.db, **lane)

    def cluster(
        self, workers: int = 2, *, pool: str = "northwind", fail: str = "", wait: bool = True, **settings: Any
    ) -> Cluster:
        """Starts workers; settings are names of AUTOMATION_… in lower case, or whole names of the environment."""
        named = {
            name if name.isupper() else f"AUTOMATION_{name.upper()}": str(value) for name, value in settings.items()
        }
        made = Cluster(
            self.db,
            self.nursery,
            self.directory / f"workers{len(self.clusters)}.log",
            workers=workers,
            pool=pool,
            fail=fail,
            settings=named,
        )
        self.clusters.append(made)
        return made.start(wait=wait)

    def server(self, name: str, *options: str) -> Server:
        """Starts a server on loopback."""
        directory = self.directory / f"server{len(self.servers)}"
        directory.mkdir()
        made = self._ends.enter_context(running(name, directory, *options))
        made.ledger.touch()
        self.servers.append(made)
        return made

    def act(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Does something in a process of its own: see `acceptance.harness.act`."""
        return subprocess.run(
            [sys.executable, "-m", "acceptance.harness.act", *arguments],
            cwd=ROOT,
            env=environment(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start_act(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Begins something in a process of its own, which the end of the world ends."""
        made = subprocess.Popen(
            [sys.executable, "-m", "acceptance.harness.act", *arguments],
            cwd=ROOT,
            env=environment(**environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._ends.callback(_end_process, made)
        return made

    def quiet(self, *, within: float = 60.0, parked: int = 0, later: int = 0) -> None:
        """Waits until every event is matched and every run has ended, but for those parked and those that wait long."""

        def still() -> dict[str, int]:
            return {
                "unmatched": self.db.value("SELECT count(*) FROM automation_event WHERE matched_at IS NULL"),
                "live": self.db.value(f"SELECT count(*) FROM automation_run WHERE {LIVE}") - parked - later,
                "timers": self.db.value("SELECT count(*) FROM automation_timer") - later,
            }

        until(
            lambda: not any(still().values()), within=within, about="quiet", told=lambda: f"{still()}\n{self.tails()}"
        )

    def check(
        self,
        *,
        parked: int = 0,
        later: int = 0,
        alarms: tuple[str, ...] = (),
        perhaps: tuple[str, ...] = (),
        fits: dict[int, str] | None = None,
        **counters: int | range,
    ) -> None:
        """What holds at the end of every test: quiet, all invariants, no deadlock, and only the counters injected.

        A counter is a number, or a range of which it must be one. `alarms` were raised, those of `perhaps` maybe.
        `fits` says by rule which events `e` it is for: each of them has exactly one run of it (I12).
        """
        self.checked = True
        self.quiet(parked=parked, later=later)
        found = self.observer.final()
        assert not found, "\n".join(found)
        assert self.observer.snapshots > 0
        for rule_id, condition in (fits or {}).items():
            wrong_events = self.db.rows(ONE_RUN.format(condition), rule_id, rule_id)
            assert not wrong_events, f"events without their one run of rule {rule_id}: {wrong_events[:5]}"
        counted, raised = self.counters(), [what for cluster in self.clusters for what in cluster.alarms()]
        self.end_clusters()
        wrong = {
            name: counted[name]
            for name in COUNTED
            if counted[name] not in (known if isinstance(known := counters.get(name, 0), range) else (known,))
        }
        assert not wrong, f"{wrong}\n{self.tails()}"
        assert set(alarms) <= set(raised) <= {*alarms, *perhaps}, f"{raised}\n{self.tails()}"
        self.one_effect_a_key()
        assert self._count_deadlocks() == self._deadlocks, "a deadlock"

    def one_effect_a_key(self) -> None:
        """I7: however often a receiver was called with a key, it was the same message, and shown once."""
        for server in self.servers:
            bodies: dict[str, set[str]] = {}
            shown: Counter[str] = Counter()
            for entry in server.entries():
                if entry["key"]:
                    bodies.setdefault(entry["key"], set()).add(_message(entry))
                    shown[entry["key"]] += bool(entry["shown"])
            assert all(len(each) == 1 for each in bodies.values()), "one key with two bodies"
            assert all(times <= 1 for times in shown.values()), "one key shown twice"

    def counters(self) -> Counter[str]:
        """The counters of all clusters together."""
        total: Counter[str] = Counter()
        for cluster in self.clusters:
            total += cluster.counters()
        return total

    def tails(self) -> str:
        """The ends of all logs."""
        return "\n".join(f"--- {cluster.log.name}\n{cluster.tail()}" for cluster in self.clusters)

    def end_clusters(self) -> None:
        """Kills what runs."""
        for cluster in self.clusters:
            cluster.end()

    def end(self) -> None:
        """Ends every process and connection, whatever happened."""
        try:
            self.end_clusters()
        finally:
            self._ends.close()
            self.observer.close()
            self.db.close()

    def _count_deadlocks(self) -> int:
        return int(self.db.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))


def _message(entry: dict[str, Any]) -> str:
    """What was sent; of a mail without its headers, of which the date is that of the try."""
    if entry["path"] != "smtp":
        return str(entry["body_sha256"])
    return json.dumps({name: value for name, value in entry["body"].items() if name != "headers"}, sort_keys=True)


def _end_process(process: subprocess.Popen[str]) -> None:
    """Kills what still runs and closes its pipes."""
    if process.poll() is None:
        process.kill()
    process.communicate()
