"""A step that uses two connections has a place with each, and only the one that failed is to blame."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

import pytest

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.core import breaker
from automation.core.errors import DefinitionError
from automation.engine.effects import EffectCall, Finished
from automation.extend import Action, ActionParams, ConnectionRef, Effect, OutsideContext, PreviewContext
from automation.models import Connection, ConnectionCall
from tests.engine.crew import Crew
from tests.engine.world import World, step
from tests.protection.test_connections import Holding, change_some, hook, of

LONG = "the system of a partner whose name nobody can remember, because it is far too long"[:80]


class Forward(Action):
    """Asks one system and tells another."""

    kind, version, label = "forward", 1, "Forward"
    effects = (Effect.AT_LEAST_ONCE,)

    class Params(ActionParams):
        """From where, and to where."""

        source: Annotated[str, ConnectionRef("webhook")]
        target: Annotated[str, ConnectionRef("webhook")]

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """The tests answer instead."""
        raise AssertionError

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """Nothing to see."""
        return {}


@pytest.fixture(autouse=True)
def _forward(monkeypatch: pytest.MonkeyPatch, world: World) -> Iterator[None]:
    monkeypatch.setitem(registry.actions, "forward@1", Forward())
    world.connection("hook")
    world.connection(LONG)
    return


def forward() -> dict[str, Any]:
    retry = {"max_attempts": 20, "base_delay": "PT30S", "factor": 1.0, "max_delay": "PT30S", "jitter": False}
    return step("both", "forward", source=LONG, target="hook") | {"retry": retry}


def narrow(world: World, name: str) -> None:
    with world.acting():
        Connection.objects.filter(name=name).update(concurrency=1)


@pytest.mark.parametrize("narrowed", ["hook", LONG])
def test_it_takes_up_a_place_of_both(world: World, narrowed: str) -> None:
    crew = Crew(world.tenant.pk)
    both, alone = world.rule("Both", forward()), world.rule("Alone", hook(narrowed))
    narrow(world, narrowed)
    door = crew.cycle.door = Holding()
    change_some(world, 1)
    crew.work()
    (first,) = door.calls
    waiting = next(rule for rule in (both, alone) if world.runs(rule)[0].reason == "endpoint_down")
    door.back = [Finished(first, Outcome.done())]
    crew.skip_waiting()
    assert len(door.calls) == 2
    assert world.runs(waiting)[0].reason == ""


def test_one_that_waits_for_one_of_its_connections_takes_up_no_place_of_the_other(world: World) -> None:
    crew = Crew(world.tenant.pk)
    first = world.rule("First", hook("hook"))
    both, later = world.rule("Both", forward()), world.rule("Later", hook(LONG))
    for name in ("hook", LONG):
        narrow(world, name)
    crew.cycle.door = Holding()
    change_some(world, 1)
    crew.work()
    assert [world.runs(rule)[0].reason for rule in (first, both, later)] == ["", "endpoint_down", ""]


def test_only_the_one_that_failed_is_found_down(world: World) -> None:
    def answer(call: EffectCall) -> Outcome:
        if call.step_id is None:
            return Outcome.done()
        for name in (LONG, "hook"):
            call.door.call(name)
        return Outcome.retry("503 Service Unavailable")

    both = world.rule("Both", forward())
    change_some(world, 6)
    world.answer = answer
    world.run_until_held()
    assert (of(world, "hook").breaker, of(world, LONG).breaker) == (breaker.OPEN, breaker.CLOSED)
    assert {(one.connection.name, one.ok) for one in ConnectionCall.objects.all()} == {("hook", False), (LONG, True)}
    world.answer = lambda call: Outcome.done()
    world.pass_time(timedelta(minutes=2))
    world.run()
    assert of(world, "hook").breaker == breaker.CLOSED
    assert set(world.states(both)) == {"succeeded"}


class Spread(Forward):
    """Tells many systems."""

    kind, version, label = "spread", 1, "Spread"

    class Params(ActionParams):
        """Whom."""

        targets: dict[str, Annotated[str, ConnectionRef("webhook")]]


def test_a_step_uses_at_most_ten_connections_and_has_a_place_with_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.actions, "spread@1", Spread())
    names = [f"partner {number}" for number in range(11)]
    for name in names:
        world.connection(name)
    with world.acting():
        for number, name in enumerate(names):
            Connection.objects.filter(name=name).update(id=9_000_000_000_000_000_000 + number)

    def spread(some: list[str]) -> dict[str, Any]:
        return step("all", "spread", targets={f"t{number}": name for number, name in enumerate(some)})

    with pytest.raises(DefinitionError) as refused:
        world.rule("Too many", spread(names))
    assert [(one.pointer, one.code) for one in refused.value.problems] == [("/steps/0/params", "too_many_connections")]
    all_ = world.rule("All", spread([*names[:10], names[0]]))
    change_some(world, 1)
    world.run()
    assert world.states(all_) == ["succeeded"]
