"""Everything is reached and done with the keyboard, in the order in which it stands, and focus is always seen."""

from playwright.sync_api import Page, expect

from tests.e2e import scene as scenes

FOCUSED = """() => {
    const one = document.activeElement, box = one.getBoundingClientRect();
    const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return {tag: one.tagName, place: [...document.querySelectorAll('*')].indexOf(one),
            covered: !(at === one || one.contains(at) || (at && at.contains(one))),
            ring: getComputedStyle(one).outlineStyle !== 'none'};
}"""
LIMIT = 200


def walk(page: Page) -> list[dict]:
    """Press Tab until the page is left; the elements that had the focus."""
    found: list[dict] = []
    for _press in range(LIMIT):
        page.keyboard.press("Tab")
        now = page.evaluate(FOCUSED)
        if now["tag"] == "BODY" or (found and now["place"] == found[0]["place"]):
            return found
        found.append(now)
    raise AssertionError("Tab never leaves the page")


def test_tab_reaches_everything_in_order_and_nothing_is_covered(open_browser):
    scene = scenes.filled(paused=True)
    page = open_browser(scene, expected=(422,))
    for name, address in scene.pages.items():
        page.goto(address)
        page.evaluate("document.activeElement.blur()")
        found = walk(page)
        places = [one["place"] for one in found]
        start = places.index(min(places))  # a page may come with the focus on its errors
        assert places[start:] + places[:start] == sorted(places), name
        assert [one for one in found if one["covered"] or not one["ring"]] == [], name


def test_the_first_stop_skips_to_the_content(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["rules"])
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_menu_opens_with_enter_and_closes_with_escape(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["rules"])
    menu = page.locator("summary", has_text="Maria Keller")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    expect(menu).to_be_focused()


def test_errors_get_the_focus_and_lead_to_their_fields(open_browser):
    scene = scenes.empty()
    page = open_browser(scene, expected=(422,))
    page.goto(scene.pages["pause"])
    page.get_by_role("button", name="Pause now").press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()


def test_a_problem_leads_to_its_line(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["draft with problems"])
    page.get_by_role("region", name="Problems").get_by_role("link").first.press("Enter")
    selected = page.evaluate(
        "(({value, selectionStart: a, selectionEnd: b}) => value.slice(a, b))(document.activeElement)"
    )
    assert "dance" in selected


def test_a_rule_is_moved_without_a_mouse(open_browser):
    scene = scenes.filled()
    page = open_browser(scene)
    page.goto(scene.pages["rules"])
    page.get_by_role("button", name="Move down: Page the lead").press("Enter")
    expect(page.get_by_role("row").nth(2)).to_contain_text("Page the lead")
    expect(page.get_by_role("button", name="Move down: Page the lead")).to_be_focused()
