"""Lanes, timers and workers by SQL, and several connections at once, for tests of the guarded statements."""

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from northwind import database

POOL = "northwind"
Row = dict[str, Any]


@dataclass
class Store:
    """A connection that commits each statement, and further ones of the same kind."""

    connection: psycopg.Connection[Row]
    others: list[psycopg.Connection[Row]] = field(default_factory=list)

    def rows(self, sql: str, *params: Any) -> list[Row]:
        """All rows of a query."""
        return self.connection.execute(sql, params).fetchall()

    def value(self, sql: str, *params: Any) -> Any:
        """The first column of the first row."""
        found = self.connection.execute(sql, params).fetchone()
        return next(iter(found.values())) if found else None

    def run(self, sql: str, *params: Any) -> int:
        """Executes a statement and answers how many rows it touched."""
        return self.connection.execute(sql, params).rowcount

    def another(self, *, autocommit: bool = True) -> psycopg.Connection[Row]:
        """One more connection."""
        made = connect(autocommit=autocommit)
        self.others.append(made)
        return made

    def lanes(self, number: int, **columns: Any) -> list[int]:
        """Tenants with their lanes; the lanes' ids."""
        self.run(
            "INSERT INTO tenants_tenant (name, slug, time_zone, language, created_at)"
            " SELECT 'Lane ' || n, 'lane-' || n, 'UTC', 'en', now()"
            " FROM (SELECT count(*) AS have FROM tenants_tenant) t, generate_series(t.have + 1, t.have + %s) n",
            number,
        )
        made = self.rows(
            "INSERT INTO automation_lane (tenant_id) SELECT t.id FROM tenants_tenant t"
            " WHERE NOT EXISTS (SELECT 1 FROM automation_lane l WHERE l.tenant_id = t.id) ORDER BY t.id RETURNING id"
        )
        ids = [one["id"] for one in made]
        for name, value in columns.items():
            self.run(f"UPDATE automation_lane SET {name} = %s WHERE id = ANY(%s)", value, ids)
        return ids

    def timers(self, lanes: Sequence[int], each: int, *, due: str = "-1 hour", kind: str = "step") -> None:
        """So many timers in each lane, due from that moment on, a millisecond apart; the lanes join the line."""
        self.run(
            "INSERT INTO automation_timer (lane_id, tenant_id, kind, due_at)"
            " SELECT l.id, l.tenant_id, %s, automation_now() + %s::interval + k * interval '1 millisecond'"
            " FROM automation_lane l, generate_series(1, %s) k WHERE l.id = ANY(%s)",
            kind,
            due,
            each,
            list(lanes),
        )
        self.run(
            "SELECT automation_lane_due(l.id, automation_now() + %s::interval) FROM automation_lane l"
            " WHERE l.id = ANY(%s) ORDER BY l.id",
            due,
            list(lanes),
        )

    def worker(self, *, ttl: str = "1 hour") -> uuid.UUID:
        """A worker with a lease."""
        made = uuid.uuid4()
        self.run("SELECT automation_enlist(%s, %s, '1', 'host', 1, %s::interval)", made, POOL, ttl)
        return made

    def claim(self, worker: uuid.UUID, most: int = 8, *, take: int = 4, match_only: bool = False) -> list[Row]:
        """Leases due timers."""
        return claim(self.connection, worker, most, take=take, match_only=match_only)

    def settle(self, worker: uuid.UUID, claimed: Sequence[Row]) -> None:
        """Deletes claimed timers."""
        for one in claimed:
            assert self.value("SELECT automation_settle(%s, %s, %s)", one["timer_id"], worker, one["lease_seq"])

    def lane(self, lane_id: int) -> Row:
        """A lane as it is now."""
        return self.rows("SELECT * FROM automation_lane WHERE id = %s", lane_id)[0]

    def close(self) -> None:
        """Closes all connections."""
        for one in (self.connection, *self.others):
            one.close()


def claim(
    connection: psycopg.Connection[Row], worker: uuid.UUID, most: int = 8, *, take: int = 4, match_only: bool = False
) -> list[Row]:
    """Leases due timers on a connection."""
    return connection.execute(
        "SELECT * FROM automation_claim(%s, %s, %s, %s, interval '1 hour', -1, %s)",
        [worker, POOL, most, take, match_only],
    ).fetchall()


def connect(*, autocommit: bool = True) -> psycopg.Connection[Row]:
    """A connection to the test database."""
    return psycopg.connect(os.environ[database.VARIABLE], autocommit=autocommit, row_factory=dict_row)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """The test database, empty."""
    made = Store(connect())
    try:
        yield made
    finally:
        made.close()
