"""Events judged a second by one worker, with a thousand rules of which one can match, against one rule."""

from statistics import median

from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured
from northwind.bench.tenants import change_all, held, make_tenants, release, unmatched, value

EVENTS, TICKETS, MANY, ROUNDS = 10_000, 2000, 1000, 3
FIRST, GOAL = 0.8, 0.95
PRIORITIES = ("high", "normal")


def measure(place: Place) -> Measured:
    """The two tenants by turns, so that both see the same machine; no run starts, judging is all there is."""
    tickets, many = place.size(TICKETS, least=20), place.size(MANY, least=5)
    rounds = max(EVENTS // TICKETS, 1)
    place.tell(f"publishing {many} rules")
    others = [definitions.elsewhere(number) for number in range(many - 1)]
    one = make_tenants(1, "one", tickets=tickets, rules=[definitions.judged_only()])[0]
    lots = make_tenants(1, "lots", tickets=tickets, rules=[*others, definitions.judged_only()])[0]
    place.start_workers(1)
    for tenant_id in (one, lots):  # the rules are read and compiled here
        place.until(lambda of=tenant_id: not unmatched([of]), about="the new tickets to be matched")  # type: ignore[misc]
    rates: dict[int, list[float]] = {one: [], lots: []}
    for number in range(ROUNDS):
        for tenant_id in (one, lots):
            place.tell(f"round {number + 1}: {tickets * rounds} events, {'1 rule' if tenant_id == one else many}")
            rates[tenant_id].append(_round(place, tenant_id, rounds))
    few, with_many = median(rates[one]), median(rates[lots])
    figures = {"events_per_s_1_rule": few, f"events_per_s_{many}_rules": with_many, "ratio": with_many / few}
    return Measured(figures, bars=[Bar(f"{many} rules ÷ 1 rule", with_many / few, FIRST, GOAL, at_most=False)])


def _round(place: Place, tenant_id: int, rounds: int) -> float:
    with held([tenant_id]):
        for number in range(rounds):
            change_all(tenant_id, priority=PRIORITIES[number % 2])
    count = unmatched([tenant_id])
    begun = release([tenant_id])
    place.until(lambda: not unmatched([tenant_id]), about="the events to be judged")
    seconds = value(
        "SELECT EXTRACT(epoch FROM max(matched_at) - %s)::float8 FROM automation_event WHERE tenant_id = %s",
        begun,
        tenant_id,
    )
    change_all(tenant_id, priority="low")
    place.until(lambda: not unmatched([tenant_id]), about="the tickets to be put back")
    return float(count / seconds)
