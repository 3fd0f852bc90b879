"""A tenant's limits with their use; people are told at 80 and at 100 percent, once."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from automation.engine import limits, usage
from automation.engine.operate import Refused
from automation.engine.rules import drafting
from automation.models import Event, Lane, Limits, Notice, Timer
from automation.store import clock
from tests.engine.world import World, make_world, step


def told(world: World) -> list[str]:
    with world.acting():
        return [notice.subject for notice in Notice.objects.filter(kind="limit").order_by("id")]


def set_limits(world: World, **values: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE automation_limits SET used_at = NULL")
    found = Limits.objects.get(tenant=world.tenant)
    for name, value in values.items():
        setattr(found, name, value)
    limits.save_limits(found, base_revision=found.revision)


def test_each_limit_is_shown_with_its_use(world: World) -> None:
    set_limits(world, rules=4)
    world.rule("One", step("note", "add_note", text="x"))
    found = {use.name: (use.used, use.limit, use.percent) for use in usage.usage(world.tenant.pk)}
    assert found["rules"] == (1, 4, 25)
    assert found["running"] == (0, 4, 0)
    assert found["events_kept"][1] == 100_000


def test_people_are_told_at_80_and_at_100_percent_and_not_again_while_it_stays_there(world: World) -> None:
    set_limits(world, rules=5)
    for number in range(4):
        world.rule(f"Rule {number}", step("note", "add_note", text="x"))
    usage.look()
    assert told(world) == ["rules:80"]
    set_limits(world, rules=4)
    usage.look()
    set_limits(world)
    usage.look()
    assert told(world) == ["rules:80", "rules:100"]
    with world.acting():
        notice = Notice.objects.get(subject="rules:100")
        assert "4 of 4" in notice.text
        assert notice.recipients == [world.ana.user.email]
        assert [one.facts["data"]["percent"] for one in Event.objects.filter(kind="limit_reached").order_by("id")] == [
            80,
            100,
        ]


def test_the_rule_that_fills_the_limit_is_told_of_by_the_next_round(world: World) -> None:
    set_limits(world, rules=2)
    usage.look()
    assert told(world) == []
    world.rule("One", step("note", "add_note", text="x"))
    world.rule("Two", step("note", "add_note", text="x"))
    usage.look()
    with world.acting(), pytest.raises(Refused, match="is reached"):
        drafting.create("Three")
    assert told(world) == ["rules:100"]
    with world.acting():
        assert [one.facts["data"]["limit"] for one in Event.objects.filter(kind="limit_reached")] == ["rules"]


def test_a_limit_that_is_lowered_below_its_use_is_told_of_by_the_next_round(world: World) -> None:
    world.rule("One", step("note", "add_note", text="x"))
    usage.look()
    found = Limits.objects.get(tenant=world.tenant)
    found.rules = 1
    limits.save_limits(found, base_revision=found.revision)
    usage.look()
    assert told(world) == ["rules:100"]


def test_who_is_refused_another_rule_is_told_of_once_a_day_and_rules_hear_of_it(world: World) -> None:
    set_limits(world, rules=1)
    world.rule("One", step("note", "add_note", text="x"))
    for _ in range(2):
        with world.acting(), pytest.raises(Refused, match="is reached"):
            drafting.create("Two")
    usage.look()
    assert told(world) == ["rules:100"]
    with world.acting():
        Notice.objects.update(period="2020-01-01")  # told on another day
        with pytest.raises(Refused, match="is reached"):
            drafting.create("Two")
        assert Event.objects.filter(kind="limit_reached").count() == 2
    assert told(world) == ["rules:100", "rules:100"]


@pytest.mark.parametrize(("rules", "minutes", "looked"), [(4, 2, True), (4, 0, False), (8, 2, False), (2, 2, False)])
def test_what_may_soon_be_used_up_is_looked_at_every_minute(
    world: World, rules: int, minutes: int, looked: bool
) -> None:
    for number in range(2):
        world.rule(f"Rule {number}", step("note", "add_note", text="x"))
    set_limits(world, rules=rules)
    usage.look()
    Limits.objects.update(used_at=F("used_at") - timedelta(minutes=minutes))
    before = Limits.objects.get(tenant=world.tenant).used_at
    usage.look()
    assert (Limits.objects.get(tenant=world.tenant).used_at != before) is looked


def test_work_that_waits_at_the_cap_is_told_of_by_the_next_round(world: World) -> None:
    usage.look()
    lane = Lane.objects.get(tenant=world.tenant)
    Lane.objects.filter(pk=lane.pk).update(running=4)
    timer = Timer.objects.create(lane=lane, tenant=world.tenant, kind="step", due_at=clock.now())
    usage.look()
    assert told(world) == []
    Timer.objects.filter(pk=timer.pk).update(due_at=clock.now() - timedelta(minutes=2))
    for _ in range(2):
        usage.look()
    assert told(world) == ["running:100"]


def test_what_has_fallen_well_below_is_told_of_again(world: World) -> None:
    set_limits(world, rules=1)
    world.rule("One", step("note", "add_note", text="x"))
    usage.look()
    set_limits(world, rules=100)
    usage.look()
    assert Limits.objects.get(tenant=world.tenant).told_rules == 0


def test_events_beyond_their_number_are_told_and_never_refused(world: World) -> None:
    set_limits(world, events_kept=3)
    for _ in range(5):
        world.ticket()
    usage.look()
    assert told(world) == ["events_kept:100"]
    with world.acting():
        assert Event.objects.filter(kind="record_changed").count() >= 5


def test_a_lane_at_its_cap_is_told_of_only_when_work_is_kept_waiting(world: World) -> None:
    lane = Lane.objects.get(tenant=world.tenant)
    Lane.objects.filter(pk=lane.pk).update(running=4)
    set_limits(world)
    usage.look()
    assert told(world) == []
    Timer.objects.create(lane=lane, tenant=world.tenant, kind="step", due_at=clock.now() - timedelta(minutes=2))
    set_limits(world)
    usage.look()
    assert told(world) == ["running:100"]


def test_a_round_of_the_chore_looks_at_those_not_looked_at_of_late(world: World) -> None:
    make_world()
    set_limits(world)
    usage.look()
    before = Limits.objects.get(tenant=world.tenant).used_at
    usage.look()
    assert Limits.objects.get(tenant=world.tenant).used_at == before


def test_saving_limits_leaves_what_people_were_told(world: World) -> None:
    set_limits(world, rules=1)
    stale = Limits.objects.get(tenant=world.tenant)
    world.rule("One", step("note", "add_note", text="x"))
    usage.look()
    limits.save_limits(stale, base_revision=stale.revision)
    assert Limits.objects.get(tenant=world.tenant).told_rules == 100


def test_a_round_looks_for_a_moment_only_and_the_next_one_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = [world, make_world()]
    for one in worlds:
        one.rule("One", step("note", "add_note", text="x"))
    Limits.objects.update(rules=1, used_at=None)
    monkeypatch.setattr(usage, "SLICE", -1.0)
    assert usage.look() == 1
    assert sorted(map(told, worlds)) == [[], ["rules:100"]]
    assert usage.look() == 1
    assert usage.look() == 0
    assert list(map(told, worlds)) == [["rules:100"]] * 2
