"""What is left to the workers: runs whose time is over, limits, and the watch over forgotten runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from automation.conf import Conf
from automation.engine import usage
from automation.engine.by_itself import by_itself
from automation.engine.health import forget_old_calls
from automation.engine.operate.expiry import expire_due
from automation.engine.stuck import Watch

log = structlog.get_logger(__name__)
WATCH_EVERY = 6  # rounds of chores


@dataclass(slots=True)
class Upkeep:
    """One round of these chores; one that fails keeps none of the others from being done."""

    conf: Conf
    watch: Watch = field(default_factory=Watch)
    _round: int = 0

    def run(self) -> None:
        """Does what is due."""
        self._safely("expiry", expire_due)
        self._safely("limits", usage.look)
        self._safely("calls", forget_old_calls)
        if self._round % WATCH_EVERY == 0:
            self._safely("watch", self.watch.look)
        self._round += 1

    def _safely(self, what: str, chore: Callable[[], int]) -> None:
        begun, done = time.monotonic(), 0
        with by_itself("chore", chore=what):
            done = chore()
        if done:
            log.info("chore", chore=what, count=done, seconds=round(time.monotonic() - begun, 2))
