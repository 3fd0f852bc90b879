"""Live parts follow what happens, never under somebody's hands, and stop when they are told to."""

import pytest
from operating import lease, make_live_run, make_run
from playwright.sync_api import expect

from automation.models import Lane, Rule, Run, Timer
from tenants.context import acting_for
from tests.e2e import scene as scenes


@pytest.fixture
def scene(open_browser):
    return scenes.filled()


def opened(open_browser, scene, name):
    page = open_browser(scene)
    page.clock.install()
    page.goto(scene.pages[name])
    return page


def new_run(scene) -> Run:
    with acting_for(scene.place.tenant.pk):
        rule = Rule.objects.select_related("tenant", "published").filter(name="Tag every imported ticket").get()
        return make_run(rule, state="succeeded")


def test_new_runs_appear_and_the_focus_stays(open_browser, scene):
    page = opened(open_browser, scene, "runs")
    page.get_by_label("Record").focus()
    run = new_run(scene)
    page.clock.fast_forward(16_000)
    expect(page.get_by_role("link", name=f"Run {run.pk}")).to_be_visible()
    expect(page.get_by_label("Record")).to_be_focused()


def test_updates_stop_when_asked_and_go_on_when_asked(open_browser, scene):
    page = opened(open_browser, scene, "runs")
    page.get_by_role("button", name="Pause updates").click()
    run = new_run(scene)
    page.clock.fast_forward(40_000)
    expect(page.get_by_role("link", name=f"Run {run.pk}")).to_have_count(0)
    page.get_by_role("button", name="Go on updating").click()
    page.clock.fast_forward(16_000)
    expect(page.get_by_role("link", name=f"Run {run.pk}")).to_be_visible()


def test_what_somebody_has_opened_or_is_in_is_not_replaced(open_browser, scene):
    page = opened(open_browser, scene, "waiting run")
    page.get_by_text("Cancel this run").click()
    page.get_by_label("Why?").fill("a long reason")
    page.clock.fast_forward(11_000)
    expect(page.get_by_label("Why?")).to_have_value("a long reason")


def test_the_pause_page_says_paused_once_the_workers_are_done(open_browser, scene):
    with acting_for(scene.place.tenant.pk):
        rule = Rule.objects.select_related("tenant", "published").filter(name="Tag every imported ticket").get()
        timer = Timer.objects.get(run_id=make_live_run(rule).pk)
        lease(timer)
    page = opened(open_browser, scene, "pause")
    page.get_by_label("Reason").fill("look")
    page.get_by_role("button", name="Pause now").click()
    expect(page.get_by_role("heading", name="Pausing")).to_be_visible()
    Timer.objects.filter(pk=timer.pk).delete()
    Lane.objects.update(running=0)
    page.clock.fast_forward(3_000)
    expect(page.get_by_role("heading", name="Paused. No step is running.")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Paused. No step is running.")
