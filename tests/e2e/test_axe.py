"""Axe finds no fault of accessibility on any page, in any state, in light, dark and on a phone."""

import pytest

from tests.e2e import scene as scenes
from tests.e2e.conftest import faults_of_axe

LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
}


@pytest.mark.parametrize(
    ("look", "paused"),
    [
        ("light", True),
        ("dark", True),
        ("phone", False),  # which is light
        pytest.param("light", False, marks=pytest.mark.long),
    ],
)
def test_no_page_with_something_on_it_has_a_fault(open_browser, look, paused):
    scene = scenes.filled(paused=paused)
    page = open_browser(scene, expected=(422,), **LOOKS[look])
    for name, address in scene.pages.items():
        page.goto(address)
        page.evaluate("document.querySelectorAll('details:not([data-menu])').forEach(one => { one.open = true })")
        assert faults_of_axe(page) == [], name


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_empty_page_has_a_fault(open_browser, look):
    scene = scenes.empty()
    page = open_browser(scene, **LOOKS[look])
    for name, address in scene.pages.items():
        page.goto(address)
        assert faults_of_axe(page) == [], name


def test_no_page_outside_of_a_tenant_has_a_fault(open_browser):
    page = open_browser(expected=(404,))
    for address in ("/accounts/login/", "/nowhere/"):
        page.goto(address)
        assert faults_of_axe(page) == [], address


def test_no_page_with_errors_has_a_fault(open_browser):
    scene = scenes.filled()
    page = open_browser(scene, expected=(422,))
    for name in ("pause", "new rule"):
        page.goto(scene.pages[name])
        page.locator("main form button[type=submit]").click()
        page.get_by_role("alert").wait_for()
        assert faults_of_axe(page) == [], f"{name} with errors"
