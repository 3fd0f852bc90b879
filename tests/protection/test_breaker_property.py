"""The breaker opens exactly when its figures say so, whatever comes in which order and at what time."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automation.catalog.action import Outcome
from automation.core.breaker import WINDOW
from automation.engine.effects import reachable
from automation.engine.health import Health
from automation.models import Connection, ConnectionCall
from tests.engine.world import World

Call = tuple[int, int, bool]  # seconds since the one before, record, whether it succeeded
CALLS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 7), st.booleans()), min_size=5, max_size=40)


def should_be_open(seen: list[tuple[datetime, int, bool]], now: datetime) -> bool:
    """The figures of the rules, counted by hand."""
    late = [(record, ok) for at, record, ok in seen if at > now - timedelta(seconds=WINDOW)]
    failing = len({record for record, ok in late if not ok})
    return failing >= 5 and failing >= sum(ok for _record, ok in late)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS)
def test_it_opens_when_five_records_fail_that_are_half_of_the_last_quarter_of_an_hour(
    world: World, calls: list[Call]
) -> None:
    with world.acting():
        Connection.objects.update(breaker="closed", breaker_trips=0)
        connection = Connection.objects.filter(name="hook").first() or world.connection()
        ConnectionCall.objects.all().delete()
    clock, seen, is_open = datetime(2026, 3, 2, tzinfo=UTC), [], False
    health = Health(lambda: clock)
    for seconds, record, ok in calls:
        clock += timedelta(seconds=seconds)
        seen.append((clock, record, ok))
        used = reachable(connection, "")
        door = SimpleNamespace(connections={"hook": used}, called=[], record_key=f"helpdesk.ticket:{record}")
        call = SimpleNamespace(claimed=SimpleNamespace(tenant_id=world.tenant.pk), door=door)
        health._written_at = -1e9  # successes are written at once, so that they have their own time
        health.note([SimpleNamespace(call=call, outcome=Outcome.done() if ok else Outcome.retry("503"))])
        is_open = is_open or (not ok and should_be_open(seen, clock))
        with world.acting():
            assert (Connection.objects.get(pk=connection.pk).breaker == "open") is is_open
        if is_open:
            break
