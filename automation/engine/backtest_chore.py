"""Backtests as a chore of the workers: short slices, while a pump has nothing else to do."""

import time
from dataclasses import dataclass, field

from automation.engine import backtest
from automation.store import backtests

ASK = 2.0  # seconds between two looks for one
SLICE = 0.1  # seconds; a batch that has begun is ended
BUSY = 2.0  # seconds after which a pump that is never idle does a slice all the same


@dataclass(slots=True)
class BacktestChore:
    """Looks now and then whether there is a backtest, and works on it in the pauses of its pump."""

    _asked_at: float = field(default_factory=lambda: -1e9)
    _worked_at: float = field(default_factory=lambda: -1e9)
    _any: bool = False

    def run(self, *, idle: bool) -> bool:
        """Does a slice when it is time; False where there was nothing to do."""
        now = time.monotonic()
        if not self._any and now - self._asked_at >= ASK:
            self._asked_at = now
            self._any = backtests.any_open()
        if not self._any or not (idle or now - self._worked_at >= BUSY):
            return False
        self._any = backtest.work(SLICE)
        self._worked_at = time.monotonic()
        return self._any
