"""How long small tenants wait beside one that has fifty thousand steps due, against one that has a thousand."""

import sys

from northwind.bench import actions, definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured, percentile
from northwind.bench.tenants import change_all, column, live_runs, make_tenants, now, unmatched

SMALL, EVERY, SECONDS = 200, 5.0, 20.0
FEW, MANY = 1000, 50_000
TICKETS = 1000
STEP_MS = 100  # a step of the big tenant: its cap of 4 then works off 40 a second, so that its backlog stays
FIRST_RATIO, GOAL_RATIO, FIRST_S, GOAL_S = 1.3, 1.05, 1.0, 0.25
PRIORITIES = ("high", "normal")
ACTION = actions.BenchNoop.name()

_WAITS = """
SELECT EXTRACT(epoch FROM COALESCE(
         (SELECT min(s.started_at) FROM automation_stepexecution s WHERE s.run_id = r.id), clock_timestamp()
       ) - e.created_at)::float8
  FROM automation_run r JOIN automation_event e ON e.id = r.event_id
 WHERE r.tenant_id = ANY(%s) AND e.cause_run_id IS NULL AND e.created_at >= %s
"""


def measure(place: Place) -> Measured:
    """The same tenants twice: beside a backlog of a thousand, and beside fifty thousand."""
    small = make_tenants(place.size(SMALL, least=4), "small", tickets=1, rules=[definitions.small()])
    big = make_tenants(1, "big", tickets=TICKETS, rules=[definitions.outside(1, STEP_MS)])[0]
    few, many = place.size(FEW, least=100), place.size(MANY, least=200)
    _fill(place, big, few)
    light = _waits(place, small, f"beside {few} due")
    _fill(place, big, many)
    heavy = _waits(place, small, f"beside {many} due")
    left = live_runs([big])
    p95_light, p95_heavy = percentile(light, 95), percentile(heavy, 95)
    figures = {
        f"p95_s_{few}_due": p95_light,
        f"p95_s_{many}_due": p95_heavy,
        "ratio": p95_heavy / p95_light if p95_light else 0.0,
        "max_s": max(heavy, default=0.0),
        "changes": len(heavy),
        "still_due_at_the_end": left,
    }
    bars = [Bar("p95 beside many ÷ few", figures["ratio"], FIRST_RATIO, GOAL_RATIO)]
    return Measured(figures, bars=[*bars, Bar("p95 beside many, s", p95_heavy, FIRST_S, GOAL_S)])


def _fill(place: Place, big: int, wanted: int) -> None:
    """Lets workers without threads match events until so many steps are due: they do no outside step."""
    place.tell(f"filling up to {wanted} due")
    place.start_workers(AUTOMATION_THREADS="0")
    turn = 0
    while (missing := wanted - live_runs([big])) > 0:
        for _ in range(-(-missing // TICKETS)):
            change_all(big, priority=PRIORITIES[turn % 2])
            turn += 1
        place.until(lambda: not unmatched([big]), about="the events to be matched")
    place.stop_workers()


def _waits(place: Place, small: list[int], what: str) -> list[float]:
    """Every wait in seconds, from the change to the start of the run's first step, by the database's clock."""
    place.start_workers()
    begun = now()
    words = [sys.executable, "manage.py", "lab", "--drive", str(EVERY), "--of", ",".join(map(str, small))]
    driver = place.tree.start("driver", words)
    seconds = SECONDS * min(1.0, max(place.scale, 0.2))
    place.tell(f"{len(small)} tenants change a ticket every {EVERY:.0f} s, {seconds:.0f} s long, {what}")
    place.until(lambda: (now() - begun).total_seconds() >= seconds, about="the time to pass")
    place.tree.end(driver)
    place.until(lambda: not unmatched(small) and not live_runs(small), about="the last changes")
    place.stop_workers()
    return [float(one) for one in column(_WAITS, small, begun)]
