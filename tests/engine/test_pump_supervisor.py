"""The command that runs workers rings for missing pumps, and leaves when ringing doesn't help."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError

from automation import queue
from automation.management.commands import run_workers
from automation.management.commands.run_workers import Command

BELL = 60.0


class Left(Exception):
    """The command ended the whole group."""


class Clock:
    """A clock that only sleeping moves; at `ends_at` somebody asks the command to stop."""

    def __init__(self, asked: list[int], ends_at: float) -> None:
        self.now, self.asked, self.ends_at = 1000.0, asked, 1000.0 + ends_at

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.ends_at:
            self.asked.append(15)


Watch = Callable[..., float]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Runs the watch for so many seconds of a clock of its own; answers how long it stayed."""

    def run(seconds: float, complete: Callable[[], bool], sentinel: Callable[[], bool] = lambda: True) -> float:
        asked: list[int] = []
        clock = Clock(asked, seconds)

        def leave(why: str) -> None:
            raise Left(why)

        monkeypatch.setattr(run_workers, "time", clock)
        monkeypatch.setattr(run_workers, "_leave", leave)
        command: Any = Command()
        monkeypatch.setattr(command, "_ring_for_missing", complete)
        try:
            command._watch(SimpleNamespace(sentinel=SimpleNamespace(is_alive=sentinel)), asked, BELL)
        except Left:
            return clock.now - 1000.0
        return seconds

    return run


@pytest.mark.fault(22)
def test_it_rings_once_a_minute(watch: Watch) -> None:
    rung: list[int] = []
    watch(10 * BELL - 1, lambda: rung.append(1) or True)  # type: ignore[func-returns-value]
    assert len(rung) == 10


@pytest.mark.case("K02")
def test_it_leaves_when_pumps_stay_missing_in_spite_of_its_bells(watch: Watch) -> None:
    assert 180 < watch(3600, lambda: False) <= 180 + BELL + 1


@pytest.mark.case("K02")
def test_it_stays_while_its_pumps_come_back(watch: Watch) -> None:
    answers = iter([False, True] * 100)
    assert watch(3600, lambda: next(answers)) == 3600


@pytest.mark.case("K02")
def test_it_leaves_at_once_when_the_cluster_died(watch: Watch) -> None:
    assert watch(3600, lambda: True, lambda: False) <= 1


def test_it_rings_for_each_pump_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    monkeypatch.setattr(queue, "live", lambda pool: [11, 12, 13])
    monkeypatch.setattr(queue, "of_group", lambda pids, group: [11])
    monkeypatch.setattr(queue, "workers", lambda: 4)
    monkeypatch.setattr(queue, "ring", rung.append)
    assert not Command()._ring_for_missing()
    assert rung == [queue.pool()] * 3


def test_a_database_that_is_away_is_no_reason_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(pool: str) -> list[int]:
        raise DatabaseError("away")

    monkeypatch.setattr(queue, "live", away)
    assert Command()._ring_for_missing()
