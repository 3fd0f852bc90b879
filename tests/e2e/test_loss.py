"""Nothing that a person typed is lost when the login runs out, the page is left, or the server is away."""

from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from tests.e2e import scene as scenes

WORDS = '{"schema_version": 1, "steps": ["half a thought"'


def test_a_login_that_ran_out_gives_the_text_back(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["draft"])
    page.get_by_label("Definition (JSON)").fill(WORDS)
    Session.objects.all().delete()
    page.get_by_role("button", name="Save draft").click()
    page.get_by_label("User name").fill("maria")
    page.get_by_label("Password").fill(scenes.PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Put it back").click()
    expect(page.get_by_label("Definition (JSON)")).to_have_value(WORDS)


def test_a_reload_gives_the_text_back_and_it_can_be_dropped(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(scene.pages["draft"])
    saved = page.get_by_label("Definition (JSON)").input_value()
    page.get_by_label("Definition (JSON)").fill(WORDS)
    page.reload()
    page.get_by_role("button", name="Drop it").click()
    expect(page.get_by_label("Definition (JSON)")).to_have_value(saved)
    page.reload()
    expect(page.get_by_role("button", name="Drop it")).to_be_hidden()


def test_what_was_saved_is_not_offered_again(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["draft"])
    editor = page.get_by_label("Definition (JSON)")
    editor.fill(editor.input_value() + "\n\n")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("status").filter(has_text="The draft is saved")).to_be_visible()
    expect(page.get_by_role("button", name="Put it back")).to_be_hidden()
