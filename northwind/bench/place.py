"""Where a bench takes place: a scratch database, and real workers that can be started and stopped."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection

from northwind.process_tree import Part, PartDiedError, ProcessTree
from northwind.scratch import scratch_database

MANAGE = (sys.executable, "manage.py")
GRACE = 75.0  # seconds that workers get to end
LOOK = 0.1
LOG_LINES = 60


@dataclass(slots=True)
class Place:
    """The scratch database's URL, its process tree, and `tell`, which gets progress; `scale` shrinks every size."""

    url: str
    tree: ProcessTree
    tell: Callable[[str], None]
    scale: float = 1.0
    _workers: list[Part] = field(default_factory=list)

    def size(self, full: int, *, least: int = 1) -> int:
        """A size of the bench, scaled."""
        return max(round(full * self.scale), least)

    def start_workers(self, count: int = 2, **settings: str) -> None:
        """Starts `run_workers` with so many pumps and waits until each is there."""
        part = self.tree.start(
            "workers", [*MANAGE, "run_workers"], grace=GRACE, environment={"WORKERS": str(count), **settings}
        )
        self._workers.append(part)
        self.until(lambda: _value("SELECT count(*) FROM automation_worker") >= count, about="the workers", seconds=60)

    def stop_workers(self) -> None:
        """Ends them; what they have in hand is settled."""
        while self._workers:
            self.tree.end(self._workers.pop())

    def until(self, reached: Callable[[], bool], *, about: str, seconds: float = 600.0) -> None:
        """Looks ten times a second; `PartDiedError` when it takes too long, or a signal asks to stop."""
        ends_at = time.monotonic() + seconds
        while not reached():
            if not self.tree.turn(LOOK):
                raise PartDiedError("asked to stop")
            if time.monotonic() > ends_at:
                raise PartDiedError(f"gave up waiting for {about}")


@contextmanager
def place(tell: Callable[[str], None], scale: float) -> Iterator[Place]:
    """A place that is taken down at the end; what the processes said last is told when something goes wrong."""
    last: deque[str] = deque(maxlen=LOG_LINES)
    with scratch_database("bench") as url, ProcessTree(lambda name, line: last.append(f"{name} | {line}")) as tree:
        tree.environment |= {"AUTOMATION_BENCH": "1", "PYTHONUNBUFFERED": "1"}
        try:
            yield Place(url, tree, tell, scale)
        except PartDiedError:
            tell("\n".join(last))
            raise


def _value(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])
