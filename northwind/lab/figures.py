"""Reads from the rows and from the pager's own ledger what the experiment has shown."""

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

from northwind.lab.world import World

MOST_RUNS, MOST_WAIT, MOST_IMPORT = 10, 1.0, 120.0

_WAITS = """
SELECT EXTRACT(epoch FROM COALESCE(
         (SELECT min(s.started_at) FROM automation_stepexecution s WHERE s.run_id = r.id), clock_timestamp()
       ) - e.created_at)::float8
  FROM automation_run r JOIN automation_event e ON e.id = r.event_id
 WHERE r.tenant_id = ANY(%s) AND r.state <> 'suppressed' AND e.cause_run_id IS NULL
 ORDER BY 1
"""
_UNMATCHED = """
SELECT EXTRACT(epoch FROM clock_timestamp() - e.created_at)::float8 FROM automation_event e
 WHERE e.tenant_id = ANY(%s) AND e.matched_at IS NULL AND e.cause_run_id IS NULL
"""
_LIVE = ["pending", "running", "waiting", "paused"]


@dataclass(frozen=True, slots=True)
class Pages:
    """Urgent tickets, those that the pager showed, and those that it showed more than once."""

    expected: int
    shown: int
    shown_twice: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What was seen. Waits in seconds, from the change to the start of the run's first step, by the database's clock.

    `on_shared` counts the steps of a tenant with workers of its own that shared ones did; None where it has none.
    """

    runs_for_one_change: int
    suppressed: int
    pages: Pages
    waits: tuple[float, ...]
    tickets: int
    import_seconds: float
    own_steps: int | None = None
    on_shared: int | None = None

    @property
    def passed(self) -> bool:
        """Whether everything is as the product promises."""
        exactly_once = self.pages.shown == self.pages.expected and not self.pages.shown_twice
        return (
            self.runs_for_one_change <= MOST_RUNS
            and exactly_once
            and bool(self.waits)
            and self.waits[-1] <= MOST_WAIT
            and self.import_seconds <= MOST_IMPORT
            and not self.on_shared
        )

    def to_json(self) -> dict[str, Any]:
        """The figures by their agreed names."""
        found: dict[str, Any] = {
            "runs_for_one_change": self.runs_for_one_change,
            "pages": {
                "expected": self.pages.expected,
                "shown": self.pages.shown,
                "shown_twice": self.pages.shown_twice,
            },
            "others_wait_s": {
                "p50": percentile(self.waits, 50),
                "p95": percentile(self.waits, 95),
                "max": percentile(self.waits, 100),
            },
            "import": {"tickets": self.tickets, "seconds": round(self.import_seconds, 2)},
            "passed": self.passed,
        }
        if self.on_shared is not None:
            found["own_pool"] = {"steps": self.own_steps, "on_shared_workers": self.on_shared}
        return found


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile of values in ascending order, to a tenth of a millisecond; 0 for none."""
    if not ordered:
        return 0.0
    return round(ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1], 4)


def read_figures(world: World, root_event: int, ledger: Path, seconds: float) -> Figures:
    """What was seen so far."""
    started, suppressed = runs_of(root_event)
    return Figures(
        runs_for_one_change=started,
        suppressed=suppressed,
        pages=pages(ledger, world.urgent),
        waits=tuple(waits(world.others)),
        tickets=len(world.imported),
        import_seconds=seconds,
    )


def waits(tenants: Sequence[int]) -> list[float]:
    """How long each change of these tenants' people has waited, ascending; one that still waits counts until now."""
    found = [row[0] for row in _rows(_WAITS, [list(tenants)])]
    return sorted([*found, *(row[0] for row in _rows(_UNMATCHED, [list(tenants)]))])


def waiting(tenants: Sequence[int]) -> bool:
    """Whether a change of these tenants' people has not been matched, or its run has not ended."""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM automation_event WHERE tenant_id = ANY(%s) AND matched_at IS NULL)"
        " OR EXISTS (SELECT 1 FROM automation_run WHERE tenant_id = ANY(%s) AND state = ANY(%s))"
    )
    return bool(_rows(sql, [list(tenants), list(tenants), _LIVE])[0][0])


def runs_of(root_event: int) -> tuple[int, int]:
    """How many runs an event has led to in the end, and how many were suppressed."""
    sql = (
        "SELECT count(*) FILTER (WHERE state <> 'suppressed'), count(*) FILTER (WHERE state = 'suppressed')"
        " FROM automation_run WHERE root_event_id = %s"
    )
    started, suppressed = _rows(sql, [root_event])[0]
    return started, suppressed


def is_over(root_event: int) -> bool:
    """Whether nothing of what an event has led to is still to come."""
    sql = (
        "SELECT NOT EXISTS (SELECT 1 FROM automation_event e"
        " WHERE e.matched_at IS NULL AND %s IN (e.id, e.root_event_id))"
        " AND NOT EXISTS (SELECT 1 FROM automation_run r WHERE r.root_event_id = %s AND r.state = ANY(%s))"
    )
    return bool(_rows(sql, [root_event, root_event, _LIVE])[0][0])


def ended(tenant_id: int, records: Sequence[int], rule: str = "") -> tuple[int, float]:
    """Of how many of these tickets the runs have all ended, and the seconds from the first event to the last end.

    `rule` limits it to the rules of that name.
    """
    sql = (
        "SELECT count(DISTINCT r.record) FILTER (WHERE r.ended_at IS NOT NULL),"
        " COALESCE(EXTRACT(epoch FROM max(r.ended_at) - min(e.created_at)), 0)::float8"
        " FROM automation_run r JOIN automation_event e ON e.id = r.event_id JOIN automation_rule u ON u.id = r.rule_id"
        " WHERE r.tenant_id = %s AND r.model = 'helpdesk.ticket' AND r.record = ANY(%s) AND r.state <> 'suppressed'"
        " AND e.cause_run_id IS NULL AND (%s = '' OR u.name = %s)"
    )
    count, seconds = _rows(sql, [tenant_id, list(records), rule, rule])[0]
    return count, seconds


def pages(ledger: Path, tickets: Collection[int]) -> Pages:
    """What the pager says that it has shown for these tickets, whatever the product believes."""
    wanted = {f"helpdesk.ticket:{ticket}" for ticket in tickets}
    shown: Counter[str] = Counter()
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    for line in lines:
        entry = json.loads(line)
        component = entry["body"]["payload"]["component"] if entry["shown"] else ""
        if component in wanted:
            shown[component] += 1
    return Pages(expected=len(wanted), shown=len(shown), shown_twice=sum(count > 1 for count in shown.values()))


def workers_of(tenant_id: int) -> Counter[str]:
    """How many attempts of a tenant's outside steps each worker made, by the worker's id."""
    sql = (
        "SELECT worker_id::text, count(*) FROM automation_attempt"
        " WHERE tenant_id = %s AND worker_id IS NOT NULL GROUP BY worker_id"
    )
    return Counter(dict(_rows(sql, [tenant_id])))


def pools() -> dict[str, str]:
    """The pool of each worker that is there now, by its id."""
    return dict(_rows("SELECT id::text, pool FROM automation_worker", []))


def holders_of(tenant_id: int) -> set[str]:
    """The workers that hold a lease of the tenant's at this moment, by their ids."""
    sql = "SELECT DISTINCT worker_id::text FROM automation_timer WHERE tenant_id = %s AND worker_id IS NOT NULL"
    return {row[0] for row in _rows(sql, [tenant_id])}


def _rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
