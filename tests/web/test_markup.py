"""Every page is sound HTML: one heading, unique ids, a label for each control, nothing inline, nothing from outside."""

import re
from html.parser import HTMLParser

import pytest
from operating import make_dead_run, make_live_run, make_rule

from automation.engine import rules as engine_rules
from automation.engine.operate import pause

POLICY = {
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'"),
    *("connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"),
}
PAGES = [
    "rules/",
    "rules/new/",
    "rules/{rule}/",
    "rules/{rule}/draft/",
    "rules/{rule}/publish/",
    "rules/{rule}/off/",
    "rules/{rule}/delete/",
    "rules/{rule}/versions/1/",
    "runs/",
    "runs/{run}/",
    "runs/{dead}/",
    "dead-letters/",
    "notices/",
    "pause/",
]
CONTROLS = {"input", "select", "textarea"}
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "use", "path"}


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.in_label: list[bool] = []
        self.unlabelled: list[dict[str, str]] = []
        self.feed(text)
        self.labels = {about.get("for") for tag, about in self.tags if tag == "label"}

    def handle_starttag(self, tag, attrs):
        about = {name: value or "" for name, value in attrs}
        self.tags.append((tag, about))
        if tag in CONTROLS and about.get("type") not in {"hidden", "submit"} and "label" not in self.open:
            self.unlabelled.append(about)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def named(self, tag: str) -> list[dict[str, str]]:
        return [about for name, about in self.tags if name == tag]


def policy(answer) -> set[str]:
    """The directives of an answer; their order means nothing."""
    directives = answer.headers["Content-Security-Policy"].split("; ")
    assert len(set(directives)) == len(directives)
    return set(directives)


@pytest.fixture(params=[False, True], ids=["running", "paused"])
def rows(acme, request):
    rule = make_rule(acme.tenant, name="Über <b>alles</b>")
    engine_rules.save_draft(rule.pk, {"steps": [{"kind": "dance"}]}, base_revision=0)
    found = {"rule": rule.pk, "run": make_live_run(rule, state="waiting").pk, "dead": make_dead_run(rule).run_id}
    if request.param:
        pause.pause(reason="look")
    return found


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_a_page_is_sound(people, rows, role, path):
    answer = people[role].get(people.page(path.format(**rows)))
    page = Page(answer.content.decode())
    assert page.crossed == []
    assert page.named("html")[0]["lang"] == "en"
    assert len(page.named("h1")) == 1
    assert len(page.named("main")) == 1
    ids = [about["id"] for _tag, about in page.tags if "id" in about]
    assert len(ids) == len(set(ids)), sorted(one for one in ids if ids.count(one) > 1)
    assert [one for one in page.unlabelled if one.get("id") not in page.labels and "aria-label" not in one] == []
    referred = {one for _tag, about in page.tags for one in about.get("aria-describedby", "").split()}
    assert referred <= set(ids)


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(people, rows, path):
    answer = people["admin"].get(people.page(path.format(**rows)))
    page = Page(answer.content.decode())
    assert policy(answer) == POLICY
    assert page.named("style") == []
    assert all("src" in about for about in page.named("script"))
    for _tag, about in page.tags:
        assert "style" not in about
        assert not [name for name in about if name.startswith("on")]
        for name in ("src", "href", "action"):
            assert not re.match(r"(https?:)?//", about.get(name, "")), about
    for form in page.named("form"):
        assert form["method"] in {"get", "post"}


def test_every_form_that_changes_something_carries_the_token(people, rows):
    for path in PAGES:
        text = people["admin"].get(people.page(path.format(**rows))).content.decode()
        assert len(re.findall(r'<form[^>]*method="post"', text)) == text.count("csrfmiddlewaretoken")


@pytest.mark.parametrize("path", ["/accounts/login/", "/nowhere/"])
def test_pages_outside_of_a_tenant_have_the_same_policy(client, db, path):
    answer = client.get(path)
    assert policy(answer) == POLICY
    assert len(Page(answer.content.decode()).named("h1")) == 1
