"""A pump starts only where one is missing, keeps a suspect apart, and neither loses nor repeats what it has in hand."""

import os
import time
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from automation import conf, queue, workers
from automation.conf import Conf
from automation.engine import wake
from automation.engine.cycle import Cycle
from automation.engine.lease import Lease
from automation.engine.upkeep import Upkeep
from automation.engine.wake import Sweeper
from automation.engine.wave_turn import Done
from automation.store.claims import Claimed

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def claimed(timer_id: int, *, lost: int = 0, kind: str = "step") -> Claimed:
    """A timer under a lease."""
    given: dict[str, Any] = {
        "timer_id": timer_id,
        "lane_id": 1,
        "tenant_id": 1,
        "kind": kind,
        "run_id": 1,
        "step_id": timer_id,
        "lease_seq": 1,
        "deliveries": 1 + lost,
        "lost": lost,
        "deadline_at": NOW,
        "claimed_at": NOW,
        "lane_pass": 0,
        "rules_version": 0,
    }
    return Claimed(**{name: given.get(name) for name in Claimed.__dataclass_fields__})


@dataclass
class Door:
    """Threads that do what the test says."""

    flying: int = 0
    in_hand: list[Any] = field(default_factory=list)

    def busy(self) -> int:
        return self.flying

    def free(self) -> int:
        return 8 - self.flying

    def calls(self) -> list[Any]:
        return self.in_hand


@pytest.fixture
def pump(monkeypatch: pytest.MonkeyPatch) -> workers.Pump:
    """A pump without threads and without a database; `line` is what its claims find."""
    made = workers.Pump(Conf(), "northwind", ends_at=time.monotonic() + 60)
    made.door = Door()  # type: ignore[assignment]
    put_back: list[int] = []
    timers = SimpleNamespace(put_back=lambda one, due_at: put_back.append(one.timer_id))
    made.cycle = SimpleNamespace(timers=timers, unsettled=[], put_back=put_back)  # type: ignore[assignment]
    return made


def line_up(monkeypatch: pytest.MonkeyPatch, *batches: list[Claimed]) -> list[list[Claimed]]:
    """What the next claims find, one batch after the other."""
    left = list(batches)
    monkeypatch.setattr(workers, "claim", lambda *args, **kwargs: left.pop(0) if left else [])
    return left


@pytest.mark.fault(35)
def test_a_suspect_waits_for_the_others_and_has_the_process_to_itself_until_it_is_done(
    pump: workers.Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = line_up(monkeypatch, [claimed(1), claimed(2, lost=2), claimed(3)], [claimed(4)])
    pump.door.flying = 3  # type: ignore[attr-defined]
    assert pump._claim() == []
    assert pump.cycle.put_back == [1, 3]  # type: ignore[attr-defined]
    assert pump._claim() == []
    pump.door.flying = 0  # type: ignore[attr-defined]
    assert [one.timer_id for one in pump._claim()] == [2]
    pump.door.flying = 1  # type: ignore[attr-defined] # the suspect's own effect
    assert pump._claim() == []
    assert len(left) == 1
    pump.door.flying = 0  # type: ignore[attr-defined]
    assert [one.timer_id for one in pump._claim()] == [4]


@pytest.mark.fault(35)
def test_a_step_that_was_lost_too_often_is_no_suspect_any_more(
    pump: workers.Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    line_up(monkeypatch, [claimed(1, lost=5), claimed(2, lost=1)])
    assert [one.timer_id for one in pump._claim()] == [1, 2]


def test_only_what_the_worker_does_not_know_of_is_adopted_after_a_broken_answer(
    pump: workers.Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    flying, unsettled = (SimpleNamespace(claimed=claimed(number)) for number in (1, 2))
    pump.door.in_hand = [flying]  # type: ignore[attr-defined]
    pump.cycle.unsettled = [SimpleNamespace(call=unsettled)]  # type: ignore[list-item]
    pump._alone = claimed(3, lost=2)
    pump._adopting = True
    monkeypatch.setattr(workers, "adopt", lambda worker: [claimed(number) for number in (1, 2, 3, 4)])
    assert [one.timer_id for one in pump._claim()] == [4]
    assert not pump._adopting


def test_a_worker_whose_lease_is_about_to_end_claims_nothing(
    pump: workers.Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = line_up(monkeypatch, [claimed(1)])
    pump.lease._sent_at = time.monotonic() - 46  # of 60, less a quarter
    assert pump._claim() == []
    pump.lease._sent_at = time.monotonic()
    assert len(pump._claim()) == 1
    assert left == []


@pytest.mark.parametrize(
    ("timeout", "age", "starts"), [(10, 44, True), (10, 46, False), (30, 24, True), (30, 26, False)]
)
def test_no_effect_starts_that_could_outlive_the_lease(timeout: float, age: float, starts: bool) -> None:
    lease = Lease(uuid.uuid4(), Conf())
    lease._sent_at = time.monotonic() - age
    call = SimpleNamespace(timeout=timeout)
    assert lease.may_start(call) is starts  # type: ignore[arg-type]
    lease.lost = True
    assert not lease.may_start(call)  # type: ignore[arg-type]


def test_outcomes_that_could_not_be_written_are_settled_once_the_database_is_back() -> None:
    cycle = Cycle.__new__(Cycle)
    cycle.unsettled = []
    asked: list[list[str]] = []
    answers: list[Any] = [OperationalError("gone"), Done(again=["b"]), Done()]  # type: ignore[list-item]

    def wave(finished: list[str], claims: list[Any]) -> Done:
        asked.append(list(finished))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    cycle.health = SimpleNamespace(note=list)  # type: ignore[assignment]
    cycle.waves = SimpleNamespace(run=wave)  # type: ignore[assignment]
    with pytest.raises(OperationalError):
        cycle._wave(["a"], [])  # type: ignore[list-item]
    cycle._wave(["b"], [])  # type: ignore[list-item]
    cycle._wave([], [])
    assert asked == [["a"], ["a", "b"], ["b"]]
    assert cycle.unsettled == []


@pytest.mark.fault(21)
@pytest.mark.fault(23)
@pytest.mark.django_db(transaction=True)
def test_a_bell_that_finds_the_pool_complete_returns_at_once() -> None:
    for _ in range(queue.workers()):
        enlist(pid=os.getpid())
    assert workers.pump() == "complete"


@pytest.mark.django_db(transaction=True)
def test_pumps_that_are_dead_or_of_another_cluster_leave_the_pool_incomplete() -> None:
    enlist(pid=2**22 + 1)  # no such process
    enlist(pid=1)  # another group
    enlist(pid=os.getpid(), pool="elsewhere")
    enlist(pid=os.getpid(), ttl="-1 second")
    assert queue.of_group(queue.live(queue.pool()), os.getpgid(0)) == []


def test_a_bell_that_comes_while_the_cluster_stops_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "stopping", lambda: True)
    assert workers.pump() == "stopping"


@pytest.mark.django_db
def test_a_bell_for_a_pool_that_no_cluster_serves_is_refused() -> None:
    with pytest.raises(queue.UnknownPool, match="nowhere"):
        queue.ring("nowhere")


@pytest.mark.case("D01")
@pytest.mark.parametrize(
    ("changed", "timeout", "retry", "why"),
    [
        ({}, 660, 60, "retry"),
        ({"pump_budget": 650.0}, 660, 2019, "budget"),
        ({"beat": 20.0}, 660, 2019, "four beats"),
        ({"step_timeout_max": 42.0, "deadline": 60.0, "pump_budget": 500.0}, 660, 2019, "longest step"),
        ({"step_timeout_max": 40.0, "lease": 90.0}, 660, 2019, "before the deadline"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(
    changed: dict[str, float], timeout: float, retry: float, why: str
) -> None:
    assert conf.problems(Conf(), queue_timeout=660, queue_retry=2019) == []
    found = conf.problems(replace(Conf(), **changed), queue_timeout=timeout, queue_retry=retry)
    assert any(why in problem for problem in found), found


@pytest.mark.case("D01")
def test_workers_refuse_to_start_with_settings_that_do_not_fit(settings: Any) -> None:
    settings.AUTOMATION_BEAT = 59.0
    with pytest.raises(CommandError, match="four beats"):
        call_command("run_workers")


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Chores:
    """The sweep's statements, as the test says."""

    since: float | None = 10.0
    workers: int = 4
    expired: int = 0
    reaped: int = 0

    def take_sweep(self, name: str, **about: Any) -> float | None:
        return self.since

    def end_sweep(self, name: str, **about: Any) -> None:
        pass

    def expired_workers(self) -> tuple[int, int]:
        return self.workers, self.expired

    def reap(self) -> list[tuple[int, int, int]]:
        self.reaped += 1
        return []

    def heal_lanes(self) -> int:
        return 0

    heal_match = heal_lanes

    def repair_running(self) -> list[tuple[int, int, int]]:
        return []


@pytest.fixture
def sweeping(monkeypatch: pytest.MonkeyPatch) -> tuple[Sweeper, Chores, Clock]:
    """A sweeper whose clock and statements are the test's."""
    chores, clock = Chores(), Clock()
    monkeypatch.setattr(wake, "timers", chores)
    monkeypatch.setattr(wake, "time", clock)
    monkeypatch.setattr(wake, "heal_pauses", lambda *, shelves_too: 0)
    monkeypatch.setattr(wake, "give_all_places", lambda: 0)
    monkeypatch.setattr(Upkeep, "run", lambda upkeep: None)
    return Sweeper(uuid.uuid4(), Conf()), chores, clock


def test_a_sweeper_that_starts_after_an_outage_waits_for_one_whole_lease(
    sweeping: tuple[Sweeper, Chores, Clock],
) -> None:
    sweeper, chores, clock = sweeping
    chores.since = 300.0
    sweeper.run()
    chores.since = 10.0
    for _ in range(5):
        clock.now += 10
        sweeper.run()
    assert chores.reaped == 0
    clock.now += 10
    sweeper.run()
    assert chores.reaped == 1


def test_an_outage_through_which_the_sweeper_kept_asking_is_one_all_the_same(
    sweeping: tuple[Sweeper, Chores, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper, chores, clock = sweeping
    sweeper.run()
    assert chores.reaped == 1
    with monkeypatch.context() as away:
        away.setattr(chores, "take_sweep", away_for_a_while)
        for _ in range(12):
            clock.now += 10
            with pytest.raises(OperationalError):
                sweeper.run()
    chores.since = None  # another sweeper was faster
    for _ in range(6):
        clock.now += 10
        sweeper.run()
        chores.since = 10.0
    assert chores.reaped == 1
    clock.now += 10
    sweeper.run()
    assert chores.reaped == 2


def away_for_a_while(name: str, **about: Any) -> float | None:
    """A database that doesn't answer."""
    raise OperationalError("away")


def test_a_sweeper_that_starts_while_others_sweep_reaps_at_once(sweeping: tuple[Sweeper, Chores, Clock]) -> None:
    sweeper, chores, _clock = sweeping
    sweeper.run()
    assert chores.reaped == 1


def test_many_workers_lost_at_once_are_believed_the_second_time(sweeping: tuple[Sweeper, Chores, Clock]) -> None:
    sweeper, chores, clock = sweeping
    chores.expired = 2
    sweeper.run()
    assert chores.reaped == 0
    clock.now += 10
    sweeper.run()
    assert chores.reaped == 1


def test_one_worker_lost_is_believed_at_once(sweeping: tuple[Sweeper, Chores, Clock]) -> None:
    sweeper, chores, _clock = sweeping
    chores.workers, chores.expired = 2, 1
    sweeper.run()
    assert chores.reaped == 1


def test_somebody_elses_chores_are_left_alone(sweeping: tuple[Sweeper, Chores, Clock]) -> None:
    sweeper, chores, _clock = sweeping
    chores.since = None
    sweeper.run()
    assert chores.reaped == 0


def enlist(*, pid: int, pool: str = "northwind", ttl: str = "1 minute") -> None:
    """A pump's row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT automation_enlist(%s, %s, '1', %s, %s, %s::interval)",
            [uuid.uuid4(), pool, workers.socket.gethostname(), pid, ttl],
        )
