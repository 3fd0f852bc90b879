"""The floor: how many commits of one UPDATE and one INSERT the database makes a second, over two connections."""

import multiprocessing
import time

import psycopg

CONNECTIONS = 2
ROWS = 1000
SECONDS = 3.0  # of one measurement at full size

_ROWS = "CREATE TABLE IF NOT EXISTS bench_row (id bigint PRIMARY KEY, state text NOT NULL, changed_at timestamptz)"
_ENTRIES = (
    "CREATE TABLE IF NOT EXISTS bench_entry (id bigserial PRIMARY KEY, row_id bigint, state text, at timestamptz)"
)
_FILL = "INSERT INTO bench_row SELECT n, 'pending', now() FROM generate_series(0, %s) n ON CONFLICT DO NOTHING"
_UPDATE = "UPDATE bench_row SET state = %s, changed_at = clock_timestamp() WHERE id = %s"
_INSERT = "INSERT INTO bench_entry (row_id, state, at) VALUES (%s, %s, clock_timestamp())"


def measure_floor(url: str, seconds: float) -> float:
    """Commits a second, of both connections together, each in a process of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ROWS)
        connection.execute(_ENTRIES)
        connection.execute(_FILL, [ROWS - 1])
    # Spawned, not forked: the caller has connections of its own open.
    with multiprocessing.get_context("spawn").Pool(CONNECTIONS) as pool:
        return sum(pool.starmap(_commit, [(url, part, seconds) for part in range(CONNECTIONS)]))


def _commit(url: str, part: int, seconds: float) -> float:
    """Commits for so long, on rows of its own; answers how many a second."""
    done = 0
    with psycopg.connect(url, autocommit=True) as connection:
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            row = (done * CONNECTIONS + part) % ROWS
            with connection.transaction():
                connection.execute(_UPDATE, ["running", row])
                connection.execute(_INSERT, [row, "running"])
            done += 1
    return done / passed
