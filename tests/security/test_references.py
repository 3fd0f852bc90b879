"""A rule that writes a reference which its tenant doesn't have fails alone: nothing else is undone or held up."""

from typing import Any

import pytest

from automation.core.errors import DefinitionError
from tests.engine.test_operate_worked import Crew
from tests.engine.world import World, make_world, step, when
from tests.factories import TicketFactory

TAG = step("t", "add_tags", tags=["seen"])


@pytest.fixture
def world(transactional_db: None) -> World:
    """A tenant whose transactions really commit: links are checked at the commit."""
    return make_world()


@pytest.fixture
def other(world: World) -> World:
    """The tenant beside it."""
    return make_world()


def numbers(other: World) -> dict[str, int]:
    """A ticket of the other tenant, one that nobody has, and a number that can't be one."""
    with other.acting():
        return {"theirs": TicketFactory(tenant=other.tenant).pk, "nobody's": 10**12, "too large": 10**25}


def task(id_: str, **values: Any) -> dict[str, Any]:
    return step(id_, "create_record", model="helpdesk.task", values={"title": "x", **values})


@pytest.mark.case("P01")
@pytest.mark.parametrize("whose", ["theirs", "nobody's", "too large"])
def test_a_link_to_another_tenants_record_is_refused_as_if_it_did_not_exist(
    world: World, other: World, whose: str
) -> None:
    number = numbers(other)[whose]
    neighbour = world.rule("Neighbour", TAG, trigger=when("created"))
    bad = world.rule(
        "Bad",
        step("z", "add_tags", tags=["first"]),
        task("a", ticket=f"{{{{ {number} }}}}"),
        trigger=when("created"),
    )
    ticket = world.ticket()
    assert world.states(bad) == ["failed rejected"]
    assert world.states(neighbour) == ["succeeded"]
    assert world.fresh(ticket).tags == ["first", "seen"]
    if whose != "too large":
        assert world.steps(world.runs(bad)[0])["a"].error == "A value names a record that doesn't exist."


@pytest.mark.case("P01")
@pytest.mark.parametrize("whose", ["theirs", "nobody's", "too large"])
def test_a_link_that_is_written_by_hand_is_refused_before_it_is_published(
    world: World, other: World, whose: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        world.rule("Bad", task("a", ticket=numbers(other)[whose]))
    assert [problem.pointer for problem in refused.value.problems] == ["/steps/0/params/values/ticket"]


def test_a_record_that_is_gone_since_its_link_was_published_fails_the_run_alone(world: World) -> None:
    with world.acting():
        linked = TicketFactory(tenant=world.tenant)
    rule = world.rule("Bad", task("a", ticket=linked.pk), trigger=when("created"))
    with world.acting():
        linked.delete()
    world.ticket()
    assert world.states(rule)[-1] == "failed rejected"


@pytest.mark.case("P01")
@pytest.mark.parametrize("delayed", [False, True], ids=["at once", "after a delay"])
def test_another_tenants_member_is_never_assigned_by_a_template(world: World, other: World, delayed: bool) -> None:
    assign = step("a", "set_fields", fields=[{"field": "assignee", "value": f"{{{{ {other.ana.pk} }}}}"}])
    wait = [{"id": "d", "kind": "delay", "for": "PT0S"}] if delayed else []
    rule = world.rule("Theirs", *wait, assign, trigger=when("created"))
    crew = Crew(world.tenant.pk)
    with world.acting():
        ticket = TicketFactory(tenant=world.tenant)
    crew.skip_waiting()
    crew.skip_waiting()
    assert world.states(rule) == ["failed rejected"]
    assert world.fresh(ticket).assignee_id is None
