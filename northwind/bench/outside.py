"""Steps a second of runs with three outside steps that do nothing, intent before and outcome after each."""

from collections.abc import Sequence

from northwind.bench import actions, definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured
from northwind.bench.tenants import change_all, held, live_runs, make_tenants, release, unmatched, value

RUNS, TENANTS, STEPS = 2000, 20, 3
FIRST, GOAL = 0.2, 0.6
ACTION = actions.BenchNoop.name()  # the bench's process knows it as well, to publish rules with it


def measure(place: Place) -> Measured:
    """Twenty tenants, and then the same number of runs of one."""
    runs = place.size(RUNS, least=TENANTS)
    many = _prepare(place, TENANTS, "many", runs)
    one = _prepare(place, 1, "one", runs)
    place.start_workers()
    rate, seconds = _run(place, many, runs, "20 tenants")
    alone, _seconds = _run(place, one, runs, "1 tenant")
    figures = {"steps_per_s": rate, "runs_per_s": rate / STEPS, "seconds": seconds, "steps_per_s_one_tenant": alone}
    return Measured(figures, rate=rate)


def bars(ratio: float) -> list[Bar]:
    """What the ratio to the floor is to reach."""
    return [Bar("steps a second ÷ floor", ratio, FIRST, GOAL, at_most=False)]


def _prepare(place: Place, tenants: int, prefix: str, runs: int) -> list[int]:
    place.tell(f"{prefix}: making {tenants} tenants")
    return make_tenants(tenants, prefix, tickets=max(runs // tenants, 1), rules=[definitions.outside(STEPS)])


def _run(place: Place, tenants: Sequence[int], runs: int, what: str) -> tuple[float, float]:
    """Steps a second from the moment at which the matchers may start to the last outcome."""
    place.until(lambda: not unmatched(tenants), about="the new tickets to be matched")
    place.tell(f"{what}: {runs} runs")
    with held(tenants):
        for tenant_id in tenants:
            change_all(tenant_id, priority="high")
    begun = release(tenants)
    place.until(lambda: not unmatched(tenants) and not live_runs(tenants), about="the runs")
    sql = (
        "SELECT count(*) FROM automation_stepexecution WHERE tenant_id = ANY(%s) AND state = 'succeeded'"
        " AND action = %s"
    )
    steps = value(sql, list(tenants), ACTION)
    seconds = value(
        "SELECT EXTRACT(epoch FROM max(ended_at) - %s)::float8 FROM automation_run WHERE tenant_id = ANY(%s)",
        begun,
        list(tenants),
    )
    return steps / seconds, seconds
