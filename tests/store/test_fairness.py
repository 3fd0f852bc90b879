"""Whose turn it is: shares by weight, no credit from being idle, caps that hold at every moment."""

import threading
import uuid
from collections import Counter
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.conftest import Store, claim

Row = dict[str, Any]


def served(store: Store, worker: uuid.UUID, places: int, *, at_once: int = 8) -> list[int]:
    """The lanes of the next so many places, each settled at once."""
    order: list[int] = []
    while len(order) < places:
        claimed = store.claim(worker, min(at_once, places - len(order)))
        assert claimed, f"nothing to claim after {len(order)} places"
        order += [one["lane_id"] for one in claimed]
        store.settle(worker, claimed)
    return order


@pytest.mark.fault(48)
def test_nobody_is_served_from_old_credit_after_all_were_idle(store: Store) -> None:
    alone, capped, idle, heavy = store.lanes(4)
    store.run("UPDATE automation_lane SET max_running = 1 WHERE id = %s", capped)
    store.run("UPDATE automation_lane SET weight = 200 WHERE id = %s", heavy)
    worker = store.worker()
    store.timers([alone], 2000)
    store.timers([capped], 20)
    served(store, worker, 1020)
    store.run("DELETE FROM automation_timer WHERE state = 'pending'")
    assert store.claim(worker) == []  # the line is empty now
    store.run("UPDATE automation_lane SET max_running = 8")

    store.timers([alone, capped, idle, heavy], 300)
    places = Counter(served(store, worker, 200))

    assert all(abs(places[lane] - 40) <= 8 for lane in (alone, capped, idle)), places
    assert abs(places[heavy] - 80) <= 8


@pytest.mark.fault(48)
def test_a_lane_that_sat_at_its_cap_for_long_lends_its_place_to_nobody(store: Store) -> None:
    busy, capped, late = store.lanes(3)
    store.run("UPDATE automation_lane SET max_running = 1 WHERE id = %s", capped)
    worker, slow = store.worker(), store.worker()
    store.timers([busy], 1200)
    store.timers([capped], 300)
    claimed = store.claim(slow, 8)
    held = next(one for one in claimed if one["lane_id"] == capped)  # an effect that takes hours
    store.settle(slow, [one for one in claimed if one is not held])
    served(store, worker, 400)
    store.settle(slow, [held])
    store.run("UPDATE automation_lane SET max_running = 4 WHERE id = %s", capped)
    store.timers([late], 300)

    places = Counter(served(store, worker, 150))

    assert all(abs(places[lane] - 50) <= 8 for lane in (busy, capped, late)), places


@pytest.mark.fault(48)
def test_one_tenant_with_thousands_of_older_timers_gets_its_share_only(store: Store) -> None:
    lanes = store.lanes(20)
    store.run("UPDATE automation_lane SET weight = 200 WHERE id = %s", lanes[1])
    store.timers(lanes[:1], 4000, due="-2 hours")
    store.timers(lanes[1:], 150)
    worker = store.worker()

    places = Counter(served(store, worker, 1000))

    assert 44 <= places[lanes[0]] <= 52
    assert 88 <= places[lanes[1]] <= 100
    assert all(44 <= places[lane] <= 52 for lane in lanes[2:])


@pytest.mark.fault(48)
def test_a_late_joiner_is_served_within_a_round_of_the_lanes(store: Store) -> None:
    lanes = store.lanes(20)
    store.timers(lanes, 200)
    worker = store.worker()
    served(store, worker, 400)
    (late,) = store.lanes(1)
    store.timers([late], 1)

    order = served(store, worker, 11 * 8)  # 21 lanes, two of them a claim of 8

    assert late in order


@pytest.mark.fault(30)
def test_a_lowered_cap_lets_nothing_in_until_enough_has_ended(store: Store) -> None:
    (lane,) = store.lanes(1, max_running=10)
    store.timers([lane], 100)
    worker = store.worker()
    running = [*store.claim(worker, 8, take=8), *store.claim(worker, 8, take=8)]
    assert len(running) == 10

    store.run("UPDATE automation_lane SET max_running = 2 WHERE id = %s", lane)
    for _ in range(8):
        assert store.claim(worker) == []
        store.settle(worker, [running.pop()])
    assert store.lane(lane)["running"] == 2
    assert store.claim(worker) == []
    store.settle(worker, [running.pop()])
    assert len(store.claim(worker)) == 1
    assert store.lane(lane)["running"] == 2

    store.run("UPDATE automation_lane SET max_running = 10 WHERE id = %s", lane)
    assert len(store.claim(worker, 20, take=20)) == 8
    assert store.lane(lane)["running"] == 10


@pytest.mark.case("D02")
@pytest.mark.fault(29)
def test_many_claimers_never_take_a_tenant_over_its_cap(store: Store) -> None:  # noqa: C901 threads in one scene
    lanes = store.lanes(6)
    for cap, lane in enumerate(lanes, start=1):
        store.run("UPDATE automation_lane SET max_running = %s WHERE id = %s", min(cap, 3), lane)
    store.timers(lanes, 60)
    workers = [store.worker() for _ in range(6)]
    done: Counter[int] = Counter()
    failures: list[BaseException] = []

    def work(worker: uuid.UUID, connection: psycopg.Connection[Row]) -> None:
        try:
            misses = 0
            while misses < 200:
                claimed = claim(connection, worker, 4, take=2)
                misses = 0 if claimed else misses + 1
                for one in claimed:
                    done[one["timer_id"]] += 1
                    settled = connection.execute(
                        "SELECT automation_settle(%s, %s, %s) AS done", [one["timer_id"], worker, one["lease_seq"]]
                    ).fetchone()
                    assert settled is not None
                    assert settled["done"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker, store.another())) for worker in workers]
    for thread in threads:
        thread.start()
    most: Counter[int] = Counter()
    while any(thread.is_alive() for thread in threads):
        for row in store.rows(
            "SELECT l.id, l.running, l.max_running, count(x.id) AS leased FROM automation_lane l"
            " LEFT JOIN automation_timer x ON x.lane_id = l.id AND x.state = 'leased' GROUP BY l.id"
        ):
            assert row["running"] == row["leased"] <= row["max_running"], row
            most[row["id"]] = max(most[row["id"]], row["leased"])
    assert not failures
    assert len(done) == 360
    assert set(done.values()) == {1}
    assert all(store.lane(lane)["running"] == 0 for lane in lanes)


@pytest.mark.fault(34)
@pytest.mark.parametrize("wrong", [3, -3])
def test_a_corrupted_counter_is_counted_anew(store: Store, wrong: int) -> None:
    (lane,) = store.lanes(1, max_running=5)
    store.timers([lane], 50)
    worker = store.worker()
    store.claim(worker, 5, take=5)
    if wrong < 0:
        assert store.lane(lane)["running"] + wrong >= 0
    store.run("UPDATE automation_lane SET running = running + %s WHERE id = %s", wrong, lane)

    repaired = store.rows("SELECT * FROM automation_repair_running()")

    assert repaired == [{"lane_id": lane, "was": 5 + wrong, "really": 5}]
    assert store.lane(lane)["running"] == 5
    assert store.rows("SELECT * FROM automation_repair_running()") == []
    assert store.claim(worker) == []


@pytest.mark.fault(34)
def test_repairing_leaves_a_counter_alone_that_was_only_in_flight(store: Store) -> None:
    (lane,) = store.lanes(1, max_running=5)
    store.timers([lane], 5)
    worker = store.worker()
    claiming = store.another(autocommit=False)
    assert len(claim(claiming, worker, 5, take=5)) == 5  # not committed yet
    assert store.rows("SELECT * FROM automation_repair_running()") == []
    claiming.commit()
    assert store.rows("SELECT * FROM automation_repair_running()") == []
    assert store.lane(lane)["running"] == 5


class Model:
    """Lanes and timers as plain Python: what the statements must agree with."""

    def __init__(self, caps: list[int]) -> None:
        self.caps = caps
        self.pending = [0] * len(caps)
        self.leased: dict[int, tuple[int, int]] = {}  # timer → (lane place, lease_seq)

    def running(self, place: int) -> int:
        return sum(1 for lane, _seq in self.leased.values() if lane == place)


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 2), st.integers(1, 5)),
        st.tuples(st.just("claim"), st.integers(1, 8), st.integers(1, 4)),
        st.tuples(st.just("settle"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("put_back"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("cap"), st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.just("reap"), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_claims_agree_with_a_plain_model_of_lanes(  # noqa: C901 one move after the other
    store: Store, moves: list[tuple[str, int, int]]
) -> None:
    store.run("DELETE FROM automation_timer")
    store.run("DELETE FROM automation_worker")
    store.run("UPDATE automation_lane SET due_hint = false")
    lanes = store.lanes(3, max_running=3)
    model, worker = Model([3, 3, 3]), store.worker()
    for verb, one, two in moves:
        if verb == "add":
            store.timers([lanes[one]], two)
            model.pending[one] += two
        elif verb == "claim":
            possible = sum(
                min(pending, max(cap - model.running(place), 0))
                for place, (pending, cap) in enumerate(zip(model.pending, model.caps, strict=True))
            )
            claimed = store.claim(worker, one, take=two)
            assert len(claimed) <= one
            assert bool(claimed) == bool(possible), "work is found whenever a lane has room"
            for timer in claimed:
                place = lanes.index(timer["lane_id"])
                assert model.running(place) < model.caps[place]
                model.pending[place] -= 1
                model.leased[timer["timer_id"]] = (place, timer["lease_seq"])
        elif verb in ("settle", "put_back") and model.leased:
            timer_id = sorted(model.leased)[one % len(model.leased)]
            place, seq = model.leased.pop(timer_id)
            if verb == "settle":
                assert store.value("SELECT automation_settle(%s, %s, %s)", timer_id, worker, seq)
                assert not store.value("SELECT automation_settle(%s, %s, %s)", timer_id, worker, seq)
            else:
                sql = "SELECT automation_put_back(%s, %s, %s, 'retry', automation_now())"
                assert store.value(sql, timer_id, worker, seq)
                assert not store.value(sql, timer_id, worker, seq)
                model.pending[place] += 1
        elif verb == "cap":
            store.run("UPDATE automation_lane SET max_running = %s WHERE id = %s", two, lanes[one])
            model.caps[one] = two
        elif verb == "reap":
            store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second'")
            store.run("SELECT automation_reap()")
            store.run(
                "UPDATE automation_timer SET due_at = automation_now() - interval '1 second' WHERE state = 'pending'"
            )
            store.run(
                "SELECT automation_lane_due(x.id, automation_now()) FROM automation_lane x WHERE EXISTS"
                " (SELECT 1 FROM automation_timer t WHERE t.lane_id = x.id AND t.state = 'pending')"
            )
            for place, _seq in model.leased.values():
                model.pending[place] += 1
            model.leased.clear()
            worker = store.worker()
        assert [store.lane(lane)["running"] for lane in lanes] == [model.running(place) for place in range(3)]
