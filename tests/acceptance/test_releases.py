"""While a release is rolled out, old and new workers share one database."""

import pytest
from acceptance.harness.scenario import note, trap
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


@pytest.mark.case("K05")
def test_a_worker_that_does_not_know_an_action_leaves_the_step_to_those_who_do(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.rule([note(), trap(world.directory / "never armed", does="exit")])
    (ticket,) = site.tickets(1)
    old = world.cluster(1, DJANGO_SETTINGS_MODULE="northwind.settings")
    site.change(ticket, priority="urgent")
    put_back = "kind IN ('step', 'retry') AND state = 'pending' AND due_at > automation_now() + interval '20 seconds'"
    until(lambda: site.timers(put_back), within=20, about="the step put back", told=world.tails)

    (step,) = site.steps("action = 'trap@1'")
    assert (step["state"], step["attempts"]) == ("pending", 0)
    assert site.letters() == []
    assert hook.entries() == []
    until(lambda: site.lane["running"] == 0, within=10, about="an idle worker")
    old.end()
    world.cluster(1)
    site.hurry()
    until(lambda: site.ended(1), within=30, about="the run's end", told=world.tails)
    assert len(hook.entries()) == 1
    assert [one["attempts"] for one in site.steps()] == [1, 1]
    world.check()
