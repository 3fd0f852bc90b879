"""A lease is a fence: whoever lost it writes nothing, and its place comes back exactly once."""

import uuid
from pathlib import Path

import psycopg
import pytest
from store.conftest import Store, claim, connect

from automation import store as store_package

FUNCTIONS = Path(store_package.__file__).parent / "sql" / "functions.sql"


def test_a_settle_under_a_lost_lease_is_refused_and_frees_no_place(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    first, second = store.worker(), store.worker()
    (lost,) = store.claim(first)
    store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second' WHERE id = %s", first)
    assert [(one["timer_id"], one["lost"]) for one in store.rows("SELECT * FROM automation_reap()")] == [
        (lost["timer_id"], 1)
    ]
    (claimed,) = store.claim(second)
    assert (claimed["timer_id"], claimed["deliveries"]) == (lost["timer_id"], 2)

    assert not store.value("SELECT automation_settle(%s, %s, %s)", lost["timer_id"], first, lost["lease_seq"])
    assert not store.value("SELECT automation_settle(%s, %s, %s)", lost["timer_id"], second, lost["lease_seq"])
    assert store.lane(lane)["running"] == 1
    store.settle(second, [claimed])
    assert store.lane(lane)["running"] == 0


def test_a_worker_that_was_declared_dead_neither_beats_nor_claims(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 2)
    worker = store.worker()
    store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second'")
    assert store.claim(worker) == []
    assert store.value("SELECT automation_beat(%s, interval '1 hour')", worker)  # late, not dead yet
    assert len(store.claim(worker)) == 2

    store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second'")
    store.run("SELECT automation_reap()")
    assert not store.value("SELECT automation_beat(%s, interval '1 hour')", worker)
    assert store.claim(worker) == []
    assert store.lane(lane)["running"] == 0


def test_a_worker_row_stays_until_none_of_its_timers_is_left(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 4)
    worker = store.worker()
    claimed = store.claim(worker, 4)
    store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second'")
    holding = store.another(autocommit=False)
    holding.execute("SELECT automation_hold(%s, %s, %s)", [worker, [claimed[0]["timer_id"]], [claimed[0]["lease_seq"]]])

    assert len(store.rows("SELECT * FROM automation_reap()")) == 3  # one of them is being settled
    assert store.value("SELECT count(*) FROM automation_worker") == 1
    holding.execute("SELECT automation_settle(%s, %s, %s)", [claimed[0]["timer_id"], worker, claimed[0]["lease_seq"]])
    holding.commit()

    assert store.rows("SELECT * FROM automation_reap()") == []
    assert store.value("SELECT count(*) FROM automation_worker") == 0
    assert store.lane(lane)["running"] == 0


def test_work_past_its_deadline_is_taken_from_a_worker_that_still_beats(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    worker = store.worker()
    store.claim(worker)
    store.run("UPDATE automation_timer SET deadline_at = automation_now() - interval '6 seconds'")
    assert len(store.rows("SELECT * FROM automation_reap()")) == 1
    assert store.value("SELECT count(*) FROM automation_worker") == 1
    assert store.lane(lane)["running"] == 0


def test_work_that_is_lost_again_and_again_waits_longer_each_time(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    waits = []
    for _ in range(6):
        store.run("UPDATE automation_timer SET due_at = automation_now()")
        store.run("SELECT automation_lane_due(%s, automation_now())", lane)
        worker = store.worker()
        assert len(store.claim(worker)) == 1
        store.run("UPDATE automation_worker SET expires_at = automation_now() - interval '1 second'")
        store.run("SELECT automation_reap()")
        waits.append(round(store.value("SELECT extract(epoch FROM due_at - automation_now()) FROM automation_timer")))
    assert waits == [0, 2, 4, 8, 16, 32]


def test_work_put_back_untouched_keeps_its_count_of_lost_leases(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    store.run("UPDATE automation_timer SET lost = 3")
    worker = store.worker()
    (one,) = store.claim(worker)
    assert store.value(
        "SELECT automation_put_back(%s, %s, %s, NULL, automation_now())", one["timer_id"], worker, one["lease_seq"]
    )
    assert store.rows("SELECT lost, kind FROM automation_timer") == [{"lost": 3, "kind": "step"}]
    (one,) = store.claim(worker)
    assert one["lost"] == 3
    assert store.value(
        "SELECT automation_put_back(%s, %s, %s, 'retry', automation_now())", one["timer_id"], worker, one["lease_seq"]
    )
    assert store.rows("SELECT lost, kind FROM automation_timer") == [{"lost": 0, "kind": "retry"}]


def test_a_wave_settles_what_it_still_has_and_says_how_many(store: Store) -> None:
    lanes = store.lanes(2)
    store.timers(lanes, 2)
    worker = store.worker()
    claimed = store.claim(worker)
    assert len(claimed) == 4
    seqs = [one["lease_seq"] for one in claimed]
    seqs[1] += 1  # somebody else has it by now
    kinds, none = [None, None, "retry", "step"], [None] * 4
    due = store.value("SELECT automation_now() - interval '1 second'")

    done = store.value(
        "SELECT automation_settle_wave(%s, %s::bigint[], %s::bigint[], %s::varchar[], %s::timestamptz[], %s::bigint[])",
        worker,
        [one["timer_id"] for one in claimed],
        seqs,
        kinds,
        [None, None, due, due],
        none,
    )

    assert done == 3
    left = {one["id"]: one["state"] for one in store.rows("SELECT id, state FROM automation_timer")}
    assert left == {
        claimed[1]["timer_id"]: "leased",
        claimed[2]["timer_id"]: "pending",
        claimed[3]["timer_id"]: "pending",
    }
    assert store.value("SELECT sum(running) FROM automation_lane") == 1


def test_a_claim_passes_by_what_others_have_locked_and_never_waits(store: Store) -> None:
    first, second = store.lanes(2)
    store.timers([first, second], 3)
    locking = store.another(autocommit=False)
    locking.execute("SELECT 1 FROM automation_lane WHERE id = %s FOR UPDATE", [first])
    store.run("SET statement_timeout = '2s'")
    worker = store.worker()
    assert {one["lane_id"] for one in store.claim(worker)} == {second}
    locking.execute("SELECT 1 FROM automation_worker FOR UPDATE")
    assert store.claim(worker) == []  # somebody is about to declare this worker dead
    locking.rollback()


def test_a_timer_is_inserted_while_its_lane_is_being_claimed(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    claiming = store.another(autocommit=False)
    assert len(claim(claiming, store.worker())) == 1
    store.run("SET statement_timeout = '2s'")
    store.run(
        "INSERT INTO automation_timer (lane_id, tenant_id, kind, due_at)"
        " SELECT id, tenant_id, 'step', automation_now() FROM automation_lane WHERE id = %s",
        lane,
    )
    claiming.commit()


def test_a_claim_inside_a_repeatable_read_transaction_fails_rather_than_admitting_too_many(store: Store) -> None:
    (lane,) = store.lanes(1, max_running=1)
    store.timers([lane], 2)
    worker = store.worker()
    early = connect(autocommit=False)
    try:
        early.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        early.execute("SELECT 1 FROM automation_lane")  # its snapshot
        assert len(store.claim(worker)) == 1
        with pytest.raises(psycopg.errors.SerializationFailure):
            claim(early, worker)
    finally:
        early.close()


def test_a_step_has_one_timer(store: Store) -> None:
    (lane,) = store.lanes(1)
    sql = (
        "INSERT INTO automation_timer (lane_id, tenant_id, kind, due_at, step_id)"
        " SELECT id, tenant_id, 'step', automation_now(), 7 FROM automation_lane WHERE id = %s"
    )
    store.run(sql, lane)
    with pytest.raises(psycopg.errors.UniqueViolation):
        store.run(sql, lane)


def test_the_statements_load_again_and_leave_the_data_alone(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 2)
    worker = store.worker()
    (held,) = store.claim(worker, 1)
    for _ in range(2):
        store.run(FUNCTIONS.read_text())  # type: ignore[arg-type]
    store.settle(worker, [held])
    assert store.value("SELECT count(*) FROM automation_timer") == 1


def test_a_chore_has_one_holder_at_a_time(store: Store) -> None:
    one, other = uuid.uuid4(), uuid.uuid4()
    take = "SELECT automation_take_sweep('chore', %s, interval '0', interval '1 minute')"
    assert store.value(take, one) == -1
    assert store.value(take, other) is None
    store.run("SELECT automation_end_sweep('chore', %s)", one)
    assert store.value(take, other) >= 0
    store.run("UPDATE automation_sweep SET expires_at = automation_now() - interval '1 second'")
    assert store.value(take, one) >= 0


def test_lanes_wake_when_their_time_has_come_and_not_before(store: Store) -> None:
    soon, late = store.lanes(2)
    store.timers([soon], 1, due="1 hour")
    store.timers([late], 1, due="2 hours")
    assert store.value("SELECT automation_wake()") == 0
    assert not store.lane(soon)["due_hint"]
    store.run("UPDATE automation_timer SET due_at = due_at - interval '90 minutes'")
    store.run("UPDATE automation_lane SET wake_at = wake_at - interval '90 minutes'")
    assert store.value("SELECT automation_wake()") == 1
    worker = store.worker()
    assert [one["lane_id"] for one in store.claim(worker)] == [soon]
    assert store.claim(worker) == []


def test_a_lane_that_sleeps_over_due_work_is_woken(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    store.run("UPDATE automation_lane SET due_hint = false")
    assert store.claim(store.worker()) == []
    assert store.value("SELECT automation_heal_lanes()") == 1
    assert store.value("SELECT automation_heal_lanes()") == 0
    assert len(store.claim(store.rows("SELECT id FROM automation_worker")[0]["id"])) == 1


def test_with_no_thread_free_only_matchers_are_claimed(store: Store) -> None:
    steps, both = store.lanes(2)
    store.timers([steps, both], 5)
    store.timers([both], 1, kind="match", due="-1 minute")
    worker = store.worker()
    assert [one["kind"] for one in store.claim(worker, 1, match_only=True)] == ["match"]
    assert store.claim(worker, 1, match_only=True) == []


def test_a_retry_of_the_same_step_goes_on_counting_its_deliveries(store: Store) -> None:
    (lane,) = store.lanes(1)
    store.timers([lane], 1)
    store.run("UPDATE automation_timer SET step_id = 7")
    worker = store.worker()
    settle = (
        "SELECT automation_settle_wave(%s, %s::bigint[], %s::bigint[], %s::varchar[],"
        " ARRAY[automation_now() - interval '1 second'], %s::bigint[])"
    )
    for next_step, deliveries in ((7, 1), (7, 2), (8, 3), (8, 1)):
        (one,) = store.claim(worker)
        assert one["deliveries"] == deliveries
        assert store.value(settle, worker, [one["timer_id"]], [one["lease_seq"]], ["retry"], [next_step]) == 1
