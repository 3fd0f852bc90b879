"""At most so many runs of a rule for one record in a span."""

from datetime import timedelta

import pytest
from django.db.models import F

from automation.models import Run
from tests.engine.world import World, leaf, step


def tagging(world: World, **limit: object):
    return world.rule("Tag", step("tag", "add_tags", tags=["seen"]), limit=limit, condition=leaf("subject", "changed"))


@pytest.mark.case("D11")
def test_of_two_matching_events_in_the_span_one_runs_and_the_other_says_why_not(world: World) -> None:
    rule, ticket = tagging(world, runs=1, per="PT3H"), world.ticket()
    world.change(ticket, subject="One", run=False)
    world.change(ticket, subject="Two")  # both are judged in one batch
    assert world.states(rule) == ["succeeded", "suppressed limit_per_record"]


def test_other_records_and_other_rules_have_places_of_their_own(world: World) -> None:
    rule, other = tagging(world, runs=2, per="P1D"), world.rule("Other", step("note", "add_note", text="x"))
    one, two = world.ticket(), world.ticket()
    for subject in ("a", "b", "c"):
        world.change(one, subject=subject)
    world.change(two, subject="d")
    assert world.states(rule) == ["succeeded", "succeeded", "suppressed limit_per_record", "succeeded"]
    assert "suppressed limit_per_record" not in world.states(other)


def test_after_the_span_it_runs_again(world: World) -> None:
    rule, ticket = tagging(world, runs=1, per="PT3H"), world.ticket()
    world.change(ticket, subject="One")
    with world.acting():  # rows have the database's time, which the runner's clock doesn't move
        Run.objects.update(created_at=world.runner.timers.clock - timedelta(hours=2, minutes=59))
    world.change(ticket, subject="Two")
    with world.acting():
        Run.objects.filter(state="succeeded").update(created_at=F("created_at") - timedelta(minutes=2))
    world.change(ticket, subject="Three")
    assert world.states(rule) == ["succeeded", "suppressed limit_per_record", "succeeded"]
