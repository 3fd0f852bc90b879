"""What fails in a chore for one tenant keeps it from nobody else."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, OperationalError
from operating import Place, make_live_run, make_rule
from operating import place as new_place
from psycopg.errors import LockNotAvailable

from automation.engine.by_itself import by_itself
from automation.engine.operate import expiry, pause
from automation.engine.rules import taking_up
from automation.models import Pause, Rule, Run
from automation.store import clock
from automation.store import rules as rule_rows
from tenants.context import acting_for, every_tenant


@pytest.fixture
def places(db: None) -> tuple[Place, Place]:
    return new_place(), new_place()


def failing_for(spoiled: object, act: Callable[..., int]) -> Callable[..., int]:
    def acting(first: object, *args: Any, **kwargs: Any) -> int:
        if first == spoiled:
            raise DataError("this one can't be done")
        return act(first, *args, **kwargs)

    return acting


def test_a_pause_that_can_not_be_ended_keeps_no_other_from_ending(places: tuple[Place, Place]) -> None:
    for one in places:
        with acting_for(one.tenant.pk, one.actor):
            pause.pause(reason="x", until=clock.now() + timedelta(hours=1))
    Pause.objects.update(until=clock.now() - timedelta(seconds=1))
    Pause.objects.filter(tenant=places[0].tenant).update(keep="recent", recent_minutes=None)

    with every_tenant():
        pause.resume_due()

    assert list(Pause.objects.filter(ended_at=None).values_list("tenant_id", flat=True)) == [places[0].tenant.pk]


def test_a_run_that_can_not_be_expired_keeps_no_other_tenants_from_it(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_live_run(make_rule(one.tenant)).pk for one in places]
    with every_tenant():
        Run.objects.filter(pk__in=runs).update(deadline_at=clock.now() - timedelta(seconds=1))
        monkeypatch.setattr(expiry, "_expire", failing_for(places[0].tenant.pk, expiry._expire))
        assert expiry.expire_due() == 1
        assert [Run.objects.get(pk=one).state for one in runs] == ["running", "failed"]


def taking(one: Place, *, next_in: float = 0.0) -> Rule:
    """A rule that takes up records, the next one in so many seconds."""
    rule = make_rule(one.tenant)
    due = clock.now() + timedelta(seconds=next_in)
    kept = taking_up.TakingUp(rate=60, last=0, until=1, posted=0, next_at=due, actor="", actor_id=None)
    rule_rows.set_taking_up(rule.pk, kept.kept())
    return rule


def test_a_rule_that_can_take_up_nothing_keeps_no_other_from_it(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (taking(one) for one in places)
    done: list[int] = []
    monkeypatch.setattr(
        taking_up, "_portion", failing_for(first.pk, lambda rule_id, **about: done.append(rule_id) or 1)
    )
    with every_tenant():
        assert taking_up.work(late=1) == 1
    assert done == [second.pk]


def test_whoever_is_paused_or_not_due_keeps_nobody_elses_turn_to_take_up(places: tuple[Place, Place]) -> None:
    paused, held, due = taking(places[0]), taking(places[1]), taking(places[1])
    taking(places[1], next_in=60)
    with acting_for(places[0].tenant.pk, places[0].actor):
        pause.pause(level="new", reason="x")
    with acting_for(places[1].tenant.pk, places[1].actor):
        pause.pause_rule(held.pk, "x")

    assert [rule_id for rule_id, _tenant in rule_rows.taking_up(limit=50)] == [due.pk]
    with acting_for(places[0].tenant.pk, places[0].actor):
        pause.resume()
    assert rule_rows.taking_up(limit=1)[0][0] == paused.pk


def test_a_lock_leaves_it_for_later_and_a_database_that_is_away_ends_the_round() -> None:
    met = OperationalError("lock")
    met.__cause__ = LockNotAvailable("lock")
    with by_itself("test"):
        raise met
    with pytest.raises(OperationalError), by_itself("test"):
        raise OperationalError("away")
