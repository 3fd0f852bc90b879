"""Pages fit on small windows, bear other spacing, colours and long words, and keep to their policy everywhere."""

import pytest

from northwind.helpdesk.models import Ticket
from tenants.context import acting_for
from tests.e2e import scene as scenes
from tests.factories import CommentFactory

TOO_WIDE = """() => document.documentElement.scrollWidth > document.documentElement.clientWidth
    ? [...document.querySelectorAll('main *, header *')].filter(one => one.getBoundingClientRect().right >
        document.documentElement.clientWidth + 1).slice(0, 5).map(one => one.outerHTML.slice(0, 120)) : []"""
SPACED = (
    "for (const one of document.querySelectorAll('*')) {one.style.setProperty('line-height', '1.5', 'important');"
    "one.style.setProperty('letter-spacing', '0.12em', 'important');"
    "one.style.setProperty('word-spacing', '0.16em', 'important')}"
)
ADMIN = ["", "automation/rule/", "automation/run/", "automation/deadletter/", "tenants/tenant/"]


@pytest.mark.parametrize(("width", "height"), [(320, 256), (768, 1024), pytest.param(390, 844, marks=pytest.mark.long)])
def test_nothing_scrolls_sideways(open_browser, width, height):
    scene = scenes.filled(paused=True)
    page = open_browser(scene, expected=(422,), viewport={"width": width, "height": height})
    for name, address in scene.pages.items():
        page.goto(address)
        assert page.evaluate(TOO_WIDE) == [], name


def test_wider_spacing_of_text_breaks_no_page(open_browser):
    scene = scenes.filled()
    page = open_browser(scene, expected=(422,), viewport={"width": 640, "height": 800})
    for name, address in scene.pages.items():
        page.goto(address)
        page.evaluate(SPACED)
        assert page.evaluate(TOO_WIDE) == [], name


def test_states_are_seen_with_forced_colours(open_browser):
    scene = scenes.filled()
    page = open_browser(scene, forced_colors="active")
    page.goto(scene.pages["rules"])
    pill = page.locator(".status").first
    assert pill.evaluate("one => getComputedStyle(one).borderStyle") == "solid"


def test_the_policy_is_never_violated_also_in_the_admin(open_browser):
    scene = scenes.filled()
    scene.user.is_superuser = True
    scene.user.save()
    page = open_browser(scene, expected=(404, 422))
    addresses = [*scene.pages.values(), "/", "/nowhere/", *(f"/admin/{path}" for path in ADMIN)]
    for address in addresses:
        answer = page.goto(address)
        assert answer.headers["content-security-policy"].count(";") == 8, address
    # open_browser fails the test for every violation that the browser reports.


def test_hostile_names_run_nothing(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for name in ("rules", "notices", "delete", "by hand"):
        page.goto(scene.pages[name])
        assert page.locator("img[onerror]").count() == 0, name
    assert dialogs == []


def test_comments_fit_on_a_tickets_page_in_the_admin_which_asks_for_nothing_that_is_not_there(open_browser):
    scene = scenes.filled()
    scene.user.is_superuser = True
    scene.user.save()
    with acting_for(scene.place.tenant.pk):
        comment = CommentFactory(tenant=scene.place.tenant, ticket=Ticket.objects.first(), author_name="n" * 60)
    page = open_browser(scene)
    missing: list[str] = []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status == 404 else None)
    page.goto(f"/admin/helpdesk/ticket/{comment.ticket_id}/change/")
    assert page.evaluate(
        "() => [...document.querySelectorAll('.inline-group')].every(one => one.scrollWidth <= one.clientWidth)"
    )
    assert missing == []
    assert page.locator("link[rel=icon]").count() == 1
