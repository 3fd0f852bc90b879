"""A person logs in, mends a draft, publishes it, switches it on, and reads what it did; also without JavaScript."""

import json

import pytest
from operating import make_run, make_step
from playwright.sync_api import expect

from automation.models import Pause, Rule
from tenants.context import acting_for
from tests.e2e import scene as scenes


def typed(page) -> dict:
    return json.loads(page.get_by_label("Definition (JSON)").input_value())


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_from_the_login_to_the_trace(open_browser, scripts):
    scene = scenes.empty()
    page = open_browser(java_script_enabled=scripts, expected=(422,))
    page.goto("/t/acme/rules/")
    page.get_by_label("User name").fill("maria")
    page.get_by_label("Password").fill(scenes.PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rules")

    page.get_by_role("link", name="New rule").click()
    page.get_by_label("Name").fill("Escalate urgent tickets")
    page.get_by_role("button", name="Create the rule").click()

    broken = {**typed(page), "steps": [{"kind": "action", "action": "no_such_action", "version": 1, "params": {}}]}
    editor = page.get_by_label("Definition (JSON)")
    editor.fill(json.dumps(broken)[:-1])
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved yet. Your text is still here.")
    assert editor.input_value() == json.dumps(broken)[:-1]
    editor.fill(json.dumps(broken))
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("region", name="Problems")).to_contain_text("/steps/0/action")

    mended = {**typed(page), "steps": [{"id": "tell", **scenes.NOTE}]}
    editor.fill(json.dumps(mended))
    page.get_by_role("button", name="Save, then review and publish").click()
    expect(page.get_by_role("region", name="What it will do")).to_contain_text("add the note “Hello”")
    page.get_by_label("Note for the list of versions").fill("First one")
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_role("status").filter(has_text="is on")).to_be_visible()

    with acting_for(scene.place.tenant.pk):
        run = make_run(Rule.objects.select_related("tenant", "published").get(), state="succeeded")
        make_step(run, state="succeeded")
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name=f"Run {run.pk}").click()
    expect(page.get_by_role("region", name="The answer")).to_contain_text("1 step is done")
    expect(page.get_by_role("region", name="If")).to_contain_text("status becomes")
    expect(page.get_by_role("region", name="Then")).to_contain_text("Add a note")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_pausing_and_resuming(open_browser, scripts):
    scene = scenes.filled()
    page = open_browser(scene, java_script_enabled=scripts)
    page.goto(scene.pages["pause"])
    page.get_by_label("Reason").fill("duplicate mails")
    page.get_by_role("button", name="Pause now").click()
    expect(page.get_by_role("heading", name="Paused. No step is running.")).to_be_visible()
    page.get_by_role("link", name="Rules", exact=True).click()
    expect(page.get_by_role("region", name="Pause")).to_contain_text("duplicate mails")
    page.get_by_role("link", name="Details").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("region", name="Pause")).to_have_count(0)
    assert not Pause.objects.filter(scope="tenant", ended_at=None).exists()


def test_two_people_edit_one_draft_and_both_keep_their_words(open_browser):
    scene = scenes.filled()
    first, second = open_browser(scene), open_browser(scene, expected=(409,))
    for page in (first, second):
        page.goto(scene.pages["draft"])
    for page, words in ((first, "theirs"), (second, "mine")):
        definition = typed(page)
        definition["steps"][0]["params"]["text"] = words
        page.get_by_label("Definition (JSON)").fill(json.dumps(definition))
        page.get_by_role("button", name="Save draft").click()
        page.wait_for_load_state()
    expect(second.get_by_role("heading", name="What the other changed")).to_be_visible()
    assert "mine" in second.get_by_label("What you typed").input_value()
    second.get_by_role("button", name="Save mine over the other's").click()
    expect(second.get_by_role("status").filter(has_text="The draft is saved")).to_be_visible()


def test_a_button_pressed_twice_does_its_work_once(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["new rule"])
    page.get_by_label("Name").fill("Only one of me")
    page.get_by_role("button", name="Create the rule").dblclick()
    page.get_by_label("Definition (JSON)").wait_for()
    with acting_for(scene.place.tenant.pk):
        assert Rule.objects.filter(name="Only one of me").count() == 1
