"""Runs the experiment: real workers, a real pager and a real inventory, and fifty tenants who work at the same time."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from northwind.lab import figures
from northwind.lab.figures import Figures
from northwind.lab.world import CHUNK, World, make_world, move_to_pool, share_one_lane
from northwind.outside import start_receiver, web_address
from northwind.process_tree import PartDiedError, ProcessTree
from northwind.scratch import scratch_database

PAGER = ["--delay-ms", "200", "--drop", "0.25"]
INVENTORY = ["--delay-ms", "50"]
SWITCHES: dict[str, dict[str, str]] = {
    "loop-guard": {"AUTOMATION_LOOP_GUARD": "0"},
    "idempotency-keys": {"AUTOMATION_IDEMPOTENCY_KEYS": "0"},
    # Beside one lane without a cap for all (`share_one_lane`): what limits one tenant's turn, a matcher's batch and
    # slice, and matching out of turn while all threads wait. A queue that serves whoever came first has none of these.
    "tenant-limit": {
        "AUTOMATION_MATCH_AHEAD": "0",
        "AUTOMATION_MATCH_BATCH": "5000",
        "AUTOMATION_MATCH_SLICE": "20",
    },
}
SHARED, OWN = "northwind", "whale"
WORKERS_GRACE = 75.0
WARM_UP = 3.0  # seconds of the small tenants' changes before anything else happens
TELL = 2.0  # seconds between two lines of progress
LOOK = 0.25
TROUBLES = ("alarm", "reaped", "repaired", "stale_settle", "healed")  # names of log lines
PAGE_RULE = "Page the lead when a ticket becomes urgent"
MANAGE = (sys.executable, "manage.py")


@dataclass(frozen=True, slots=True)
class Setup:
    """How the experiment is run. `without` names a protection that is off; `own_pool` gives Contoso its own workers."""

    tenants: int = 50
    tickets: int = 2000
    every: float = 3.0
    without: str = ""
    own_pool: bool = False
    seed: int = 1
    longest: float = 300.0  # seconds for any one thing to come to its end

    def environment(self) -> dict[str, str]:
        """What the workers get; the engine's real mechanism is switched off, nothing is simulated."""
        found = {"AUTOMATION_LAB": "1", "AUTOMATION_ALLOW_LOOPBACK": "1", "WORKERS": "2", "PYTHONUNBUFFERED": "1"}
        return found | SWITCHES.get(self.without, {})


@dataclass(slots=True)
class Lab:
    """One run of the experiment; `tell` gets progress, `log` what the processes say."""

    setup: Setup
    tell: Callable[[str], None]
    log: Callable[[str, str], None]
    pool_of: dict[str, str] = field(default_factory=dict)
    held_by: set[str] = field(default_factory=set)
    troubles: Counter[str] = field(default_factory=Counter)
    _begun: float = field(default_factory=time.monotonic)
    _told: float = 0.0

    def run(self) -> Figures:
        """Everything from the empty database to the figures; `PartDiedError` when a process ends or a signal comes."""
        with self._place() as (tree, ledgers):
            pager = start_receiver(tree, "pager", ledgers=ledgers, options=[*PAGER, "--seed", str(self.setup.seed)])
            inventory = start_receiver(tree, "webhooks", ledgers=ledgers, options=INVENTORY)
            _go_on(not tree.asked)
            self._say(f"making {self.setup.tenants} tenants")
            world = make_world(
                self.setup.tenants, pager=web_address(pager["port"]), inventory=web_address(inventory["port"])
            )
            if self.setup.without == "tenant-limit":
                share_one_lane()
            self._start_workers(tree, world)
            found = self._course(tree, world, ledgers / "pager.jsonl")
        if self.troubles:
            self._say(f"the workers said: {dict(self.troubles)} (see --log)")
        return found

    @contextmanager
    def _place(self) -> Iterator[tuple[ProcessTree, Path]]:
        with (
            tempfile.TemporaryDirectory(prefix="northwind-lab-") as folder,
            scratch_database("lab"),
            ProcessTree(self._heard) as tree,
        ):
            tree.environment |= self.setup.environment()
            yield tree, Path(folder)

    def _start_workers(self, tree: ProcessTree, world: World) -> None:
        pools = [SHARED]
        if self.setup.own_pool:
            move_to_pool(world.contoso, OWN)
            pools.append(OWN)
        for pool in pools:
            more = {} if pool == SHARED else {"Q_CLUSTER_NAME": pool}
            part = tree.start(f"workers {pool}", [*MANAGE, "run_workers"], grace=WORKERS_GRACE, environment=more)
            tree.wait_for(part, lambda line: "started" in line)
        self._until(tree, lambda: len(figures.pools()) >= 2 * len(pools), about="the workers")

    def _course(self, tree: ProcessTree, world: World, ledger: Path) -> Figures:
        words = [*MANAGE, "lab", "--drive", str(self.setup.every), "--of", ",".join(map(str, world.others))]
        driver = tree.start("driver", words)
        begun = time.monotonic()
        self._until(tree, lambda: time.monotonic() - begun > WARM_UP, about="a warm-up")
        self._say(f"Contoso imports {self.setup.tickets} tickets")
        for start in range(0, self.setup.tickets, CHUNK):
            world.import_some(range(start, min(start + CHUNK, self.setup.tickets)))
            self._look(tree, world)
        self._say("Ana changes one ticket")
        root = world.change_one()
        self._until(tree, lambda: self._look(tree, world) and figures.is_over(root), about="the end of one change")
        self._say(f"{len(world.urgent)} tickets become urgent")
        for ticket in world.urgent:
            world.make_urgent(ticket)
        self._until(tree, lambda: self._look(tree, world) and self._is_done(world), about="the pages and the import")
        tree.end(driver)
        self._until(tree, lambda: self._have_run(world), about="the last changes of the others")
        self._look(tree, world)
        return self._figures(world, root, ledger)

    def _is_done(self, world: World) -> bool:
        imported, _seconds = figures.ended(world.contoso, world.imported)
        paged, _seconds = figures.ended(world.acme, world.urgent, PAGE_RULE)
        return imported == len(world.imported) and paged == len(world.urgent)

    def _have_run(self, world: World) -> bool:
        """Whether no change of the small tenants is still waiting: it would be counted until now."""
        return not figures.waiting(world.others)

    def _figures(self, world: World, root: int, ledger: Path) -> Figures:
        _count, seconds = figures.ended(world.contoso, world.imported)
        found = figures.read_figures(world, root, ledger, seconds)
        if not self.setup.own_pool:
            return found
        steps = figures.workers_of(world.contoso)
        shared = sum(count for worker, count in steps.items() if self.pool_of.get(worker) != OWN)
        shared += sum(self.pool_of.get(worker) != OWN for worker in self.held_by)
        return replace(found, own_steps=sum(steps.values()), on_shared=shared)

    def _look(self, tree: ProcessTree, world: World) -> bool:
        """Passes time, notes each worker's pool while its row is there, and tells how far things have come."""
        _go_on(tree.turn(0))
        self.pool_of |= figures.pools()
        self.held_by |= figures.holders_of(world.contoso)
        if time.monotonic() - self._told >= TELL:
            self._told = time.monotonic()
            imported, _seconds = figures.ended(world.contoso, world.imported)
            paged, _seconds = figures.ended(world.acme, world.urgent, PAGE_RULE)
            waited = figures.waits(world.others)
            self._say(
                f"imported {imported} of {self.setup.tickets}, paged {paged} of {len(world.urgent)}, the others made"
                f" {len(waited)} changes and waited {figures.percentile(waited, 100):.3f} s at most"
            )
        return True

    def _until(self, tree: ProcessTree, reached: Callable[[], bool], *, about: str) -> None:
        ends_at = time.monotonic() + self.setup.longest
        while not reached():
            _go_on(tree.turn(LOOK))
            if time.monotonic() > ends_at:
                self._say(f"gave up waiting for {about} after {self.setup.longest:.0f} s")
                return

    def _heard(self, name: str, line: str) -> None:
        """Counts what workers should have no reason to say."""
        self.troubles.update(word for word in TROUBLES if f" {word} " in line)
        self.log(name, line)

    def _say(self, text: str) -> None:
        self.tell(f"{time.monotonic() - self._begun:6.1f} s  {text}")


def _go_on(wanted: bool) -> None:
    if not wanted:
        raise PartDiedError("asked to stop")
