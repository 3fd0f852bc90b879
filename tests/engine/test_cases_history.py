"""A change of many records at once costs what it must, whatever the number of rules."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from automation.models import Event, Run
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, set_field, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
RULES, FITTING = 20, 2


def statements(work: Callable[[], object]) -> list[str]:
    """What is asked of the database meanwhile."""
    found: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        found.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        work()
    return found


def close(world: World, tickets: list[int]) -> tuple[int, list[str]]:
    """Closes tickets in one call: how many statements that takes, and what follows from it until all runs wait."""
    with world.acting():
        world.commit()
        made = statements(lambda: Ticket.objects.filter(pk__in=tickets).update(status="closed"))
        world.commit()
    return len(made), statements(world.run_until_held)


@pytest.mark.case("H04")
def test_five_hundred_changes_at_once_cost_no_statement_per_row_and_rule(world: World):
    for n in range(FITTING):
        wait = {"id": "wait", "kind": "delay", "for": "P1D"}
        world.rule(
            f"Fits {n}", wait, trigger=when("updated", fields=["status"]), condition=leaf("status", "is", "closed")
        )
    with world.acting():
        tickets = [TicketFactory(tenant=world.tenant).pk for _ in range(600)]
    world.run_until_held()

    change, with_two = close(world, tickets[:50])
    for n in range(RULES - FITTING):
        world.rule(f"Other {n}", set_field("s", "priority", "high"), condition=leaf("subject", "is", f"X{n}"))
    _, with_twenty = close(world, tickets[50:100])
    large_change, large = close(world, tickets[100:])

    assert large_change == change
    assert len(with_twenty) <= len(with_two) + RULES  # the tenant is read anew, once; by row and rule it were 900 more
    assert len(large) / 500 <= len(with_twenty) / 50
    assert sum("automation_ruleversion" in sql for sql in large) <= 1
    with world.acting():
        assert Event.objects.filter(change="updated").count() == len(tickets)
        assert Run.objects.count() == FITTING * len(tickets)
