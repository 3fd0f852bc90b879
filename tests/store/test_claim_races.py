"""A claim that meets a step which was committed while it looked knows what kind of step that is."""

import threading
import uuid

import pytest
from django.db import connection
from operating import make_live_run, make_rule
from operating import place as new_place

from automation.store import claims
from automation.store.claims import Claimed
from tenants.context import acting_for

LOCK = 4711
WAITING = (
    "CREATE OR REPLACE FUNCTION automation_now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$"
    f" BEGIN PERFORM pg_advisory_lock_shared({LOCK}); PERFORM pg_advisory_unlock_shared({LOCK});"
    " RETURN clock_timestamp(); END $$"
)
PLAIN = (
    "CREATE OR REPLACE FUNCTION automation_now() RETURNS timestamptz LANGUAGE sql VOLATILE"
    " AS 'SELECT clock_timestamp()'"
)


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.django_db(transaction=True)
def test_a_step_that_was_committed_amid_the_claim_is_no_step_without_a_kind() -> None:
    acme, worker = new_place(), uuid.uuid4()
    claims.enlist(worker, pool="northwind", release="", host="beta", pid=1, lease=60)
    found: list[Claimed] = []

    def claim() -> None:
        found.extend(claims.claim(worker, pool="northwind", most=8, take=8, deadline=40, floor=-1, match_only=False))
        connection.close()

    execute(WAITING)
    try:
        execute(f"SELECT pg_advisory_lock({LOCK})")
        claiming = threading.Thread(target=claim)
        claiming.start()
        while not blocked():
            pass
        with acting_for(acme.tenant.pk):
            make_live_run(make_rule(acme.tenant))
        execute(f"SELECT pg_advisory_unlock({LOCK})")
        claiming.join()
    finally:
        execute(PLAIN)

    assert [(one.step_kind, one.action) for one in found] == [("action", "add_note@1")]


def blocked() -> bool:
    """Whether somebody waits for the advisory lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted", [LOCK])
        return cursor.fetchone() is not None
