"""Whatever is paused and resumed in whatever order, no step is lost and lanes stand as the open pauses say."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from database_clock import StoppedClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operating import Place, make_live_run, make_rule
from operating import place as new_place

from automation.engine import rules
from automation.engine.operate import Refused, pause
from automation.engine.operate.pause import Choice
from automation.models import Drip, Pause, Rule, Run, Timer
from automation.store import drips, shelves
from automation.store.shelves import Shelved
from tenants.context import acting_for

ENDED = ("succeeded", "failed", "cancelled")
CHOICES = [Choice(), Choice(rate=60), Choice(rate=6000), Choice("recent", 60), Choice("drop"), Choice("drop", rate=60)]
Step = Callable[[Place, Rule, StoppedClock], object]
choices = st.sampled_from(CHOICES)


def claim(acme: Place, rule: Rule, clock: StoppedClock) -> None:
    """What workers do with due steps of a rule that is stopped: they hold them."""
    due = Timer.objects.filter(run_id__isnull=False, state="pending", due_at__lte=clock.at)
    shelves.put([Shelved(acme.tenant.pk, "rule", rule.pk, one) for one in due.values_list("step_id", flat=True) if one])


def resume_rule(rule: Rule, choice: Choice) -> None:
    """What is let out though no pause has held it, of a rule that was off, can't be dropped so."""
    with suppress(Refused):
        pause.resume_rule(rule.pk, choice)


steps: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from(["new", "hold"]).map(lambda level: lambda a, r, c: pause.pause(level=level, reason="x")),
    choices.map(lambda choice: lambda a, r, c: pause.resume(choice)),
    st.just(lambda a, r, c: pause.pause_rule(r.pk, "x")),
    choices.map(lambda choice: lambda a, r, c: resume_rule(r, choice)),
    st.just(claim),
    st.sampled_from(["hold", "finish"]).map(lambda how: lambda a, r, c: rules.switch_off(r.pk, waiting=how)),
    st.just(lambda a, r, c: rules.switch_on(r.pk)),
    st.just(lambda a, r, c: pause.pause_installation(reason="x")),
    choices.map(lambda choice: lambda a, r, c: pause.resume_installation(choice)),
    st.just(lambda a, r, c: make_live_run(r)),
    st.floats(0, 100).map(lambda seconds: lambda a, r, c: c.forward(seconds)),
    st.just(lambda a, r, c: drips.let_out(late=2.0)),
)


@pytest.mark.django_db
@given(told=st.lists(steps, min_size=3, max_size=14))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_pauses_and_resumes_loses_a_step(told: list[Step]) -> None:
    in_this_order(told)


@pytest.mark.long
@pytest.mark.django_db
@given(told=st.lists(steps, min_size=3, max_size=14))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_pauses_and_resumes_loses_a_step_however_long_one_looks(told: list[Step]) -> None:
    in_this_order(told)


def in_this_order(told: list[Step]) -> None:
    """Does what was drawn, looking at the invariants after each step, and then lets everything go on."""
    acme = new_place()
    with acting_for(acme.tenant.pk, acme.actor):
        rule = make_rule(acme.tenant)
        stopped = StoppedClock()
        for _ in range(3):
            make_live_run(rule)
        for step in told:
            step(acme, rule, stopped)
            look(acme)
        pause.resume_installation()
        pause.resume()
        pause.resume_rule(rule.pk)
        rules.switch_on(rule.pk)
        for _ in range(40):
            stopped.forward(10)
            drips.let_out(late=2.0)
        look(acme)
        assert not Timer.objects.filter(tenant=acme.tenant, state="held").exists()
        assert not Drip.objects.filter(tenant=acme.tenant, ended_at=None).exists()


def look(acme: Place) -> None:
    """The invariants."""
    stops = [one for one in Pause.objects.filter(ended_at=None) if one.scope in ("tenant", "installation")]
    assert acme.lane.hold_new == bool(stops)
    assert acme.lane.paused == any(one.level != "new" for one in stops)
    live = set(Run.objects.exclude(state__in=ENDED).values_list("id", flat=True))
    timers = list(Timer.objects.filter(tenant=acme.tenant).exclude(kind="match").values_list("run_id", flat=True))
    assert sorted(timers) == sorted(live)
    for drip in Drip.objects.filter(ended_at=None, scope="rule"):
        off = Rule.objects.get(pk=drip.subject_id)
        stopped = Pause.objects.filter(scope="rule", ended_at=None).exists() or (not off.on and off.off_mode == "hold")
        assert (drip.next_at is None) == stopped
    let_out_by = set(Drip.objects.filter(ended_at=None).values_list("id", flat=True))
    assert set(Timer.objects.filter(state="held").values_list("drip_id", flat=True)) <= let_out_by
