"""Steps a second of rules with three local steps, the events of their own changes included."""

from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured
from northwind.bench.tenants import change_all, held, live_runs, make_tenants, release, unmatched, value

EVENTS, TENANTS, STEPS = 2000, 20, 3
FIRST, GOAL = 0.25, 1.0


def measure(place: Place) -> Measured:
    """All events are there; the time is from the moment at which the matchers may start to the last event judged."""
    events = place.size(EVENTS, least=TENANTS)
    place.tell(f"making {TENANTS} tenants")
    tenants = make_tenants(TENANTS, "local", tickets=events // TENANTS, rules=[definitions.local()])
    place.start_workers()
    place.until(lambda: not unmatched(tenants), about="the new tickets to be matched")
    place.tell(f"{events} events")
    with held(tenants):
        for tenant_id in tenants:
            change_all(tenant_id, priority="high")
    begun = release(tenants)
    place.until(lambda: not unmatched(tenants) and not live_runs(tenants), about="the runs")
    steps = value(
        "SELECT count(*) FROM automation_stepexecution WHERE tenant_id = ANY(%s) AND state = 'succeeded'", tenants
    )
    seconds = value(
        "SELECT EXTRACT(epoch FROM max(matched_at) - %s)::float8 FROM automation_event WHERE tenant_id = ANY(%s)",
        begun,
        tenants,
    )
    rate = steps / seconds
    return Measured({"steps_per_s": rate, "runs_per_s": rate / STEPS, "seconds": seconds}, rate=rate)


def bars(ratio: float) -> list[Bar]:
    """What the ratio to the floor is to reach."""
    return [Bar("steps a second ÷ floor", ratio, FIRST, GOAL, at_most=False)]
