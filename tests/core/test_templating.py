"""Templates of tenants: right for their place, unable to reach anything, and bounded in time and memory."""

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.errors import TemplateError, TemplateProblem
from automation.core.template_dates import DATE_TOKENS
from automation.core.templating import check, check_names, nested, plain, render

ATHENS = ZoneInfo("Europe/Athens")
KNOWN = frozenset({"ticket.subject", "ticket.created_by", "ticket.customer.id", "ticket.customer.name", "ticket.tags"})
KNOWN |= {"ticket.created_at", "ticket.amount", "event.*", "tenant.name", "steps.page.*"}
VALUES: dict[str, Any] = {
    "ticket": {
        "subject": "Printer",
        "created_by": "Ann",
        "customer": {"id": 5, "name": "<img src=x onerror=1>"},
        "tags": ["a", "b"],
        "created_at": "2025-12-31T23:30:00+00:00",
        "amount": "10.50",
        "nothing": None,
        "header": "A\r\nBcc: x@y",
    },
    "event": {"x": {"y": 1}},
}


def shown(source: str, target: str = "text", **values: Any) -> str:
    return render(source, VALUES | values, target=target, zone=ATHENS)


def shown_or_refused(source: str, target: str = "text", **values: Any) -> str:
    """What is rendered, or the words of the refusal; any other error is one of ours."""
    try:
        return shown(source, target, **values)
    except TemplateError as error:
        return str(error)


@pytest.mark.case("M01")
def test_unknown_names_are_listed_when_saved_and_blank_when_rendered() -> None:
    assert check("{{ title }} {{ ticket.custom.removed }}", KNOWN) == [
        "there is no value called 'title'",
        "there is no value called 'ticket.custom.removed'",
    ]
    assert shown("[{{ title }}{{ ticket.custom.removed }}]") == "[]"
    assert check("{{ ticket.created_by }}", KNOWN) == []
    assert shown("{{ ticket.created_by }}") == "Ann"


def test_names_used_are_told_apart_from_the_templates_own() -> None:
    source = "{% for tag in ticket.tags %}{{ tag }}{{ forloop.index }}{% endfor %}{% assign a = event.x.y %}{{ a }}"
    assert check_names(source, KNOWN) == ({"ticket.tags", "event.x"}, [])
    assert check_names("{{ gone }}", KNOWN)[1] == [TemplateProblem("unknown_name", "gone")]
    assert check("{{ ticket.tags.first }}{{ ticket.tags[0] }}{{ ticket.subject.size }}{{ steps.page.id }}", KNOWN) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ ticket }}", "has several values"),
        ("{{ ticket.customer }}", "has several values"),
        ("{{ ticket[event.x] }}", "no value called"),
        ("{% assign t = ticket %}{{ t.secret }}", "has several values"),
        ("{{ ticket.subject | upcse }}", "no filter 'upcse'"),
        ("{{ 'a' | safe }}", "no filter 'safe'"),
        ("{{ ticket.created_at | date: '%Y-%j' }}", "%j is not a token"),
    ],
)
def test_what_would_not_render_as_meant_is_said_when_saved(source: str, message: str) -> None:
    assert message in " ".join(check(source, KNOWN))


@pytest.mark.parametrize(
    "source", ["{{ ticket.subject", "{% if ticket.subject %}x", "{% if", "{{ a | ", "{% comment %}", "{{}}"]
)
def test_a_template_that_does_not_end_is_an_error_and_not_text(source: str) -> None:
    assert len(check(source, KNOWN)) == 1
    with pytest.raises(TemplateError):
        shown(source)


@pytest.mark.parametrize("name", ["limit", "offset", "for", "with", "reversed", "required", "true", "contains", "and"])
def test_a_name_may_be_a_word_of_the_language(name: str) -> None:
    sources = (
        f"{{{{ event.{name} }}}}",
        f"{{% if event.{name} == 'rules' and event.{name} %}}{{{{ event.{name} | required }}}}{{% endif %}}",
        f"{{% assign x = event.{name} %}}{{% case event.{name} %}}{{% when 'rules' %}}{{{{ x }}}}{{% endcase %}}",
        f"{{% for one in event.{name} limit: 1 %}}{{{{ one }}}}{{% endfor %}}",
    )
    for source in sources:
        assert check_names(source, KNOWN) == ({f"event.{name}"}, []), source
        assert shown(source, event={name: "rules"}) == "rules", source


def test_a_required_value_that_is_empty_stops_the_rendering() -> None:
    assert shown("{{ ticket.subject | required }}") == "Printer"
    for name in ("ticket.nothing", "ticket.gone", "nobody"):
        with pytest.raises(TemplateError, match="required"):
            shown(f"{{{{ {name} | required }}}}")


def test_an_empty_value_is_blank_falsy_and_replaced_by_a_default() -> None:
    assert (
        shown("[{{ ticket.nothing }}]{% if ticket.gone %}a{% else %}b{% endif %}{{ ticket.gone | default: 'c' }}")
        == "[]bc"
    )


@pytest.mark.case("M02")
def test_each_target_escapes_for_its_own_place() -> None:
    source = "{{ ticket.customer.name }}"
    assert shown(source) == "<img src=x onerror=1>"
    assert shown(source, "html") == "&lt;img src=x onerror=1&gt;"
    assert (
        shown("https://x/?q={{ ticket.customer.name }}&a=b", "url")
        == "https://x/?q=%3Cimg%20src%3Dx%20onerror%3D1%3E&a=b"
    )
    assert (
        shown('{"a": "{{ ticket.header }}", "b": {{ ticket.tags | json }}}', "json")
        == '{"a": "A\\r\\nBcc: x@y", "b": ["a", "b"]}'
    )
    assert shown("Re: {{ ticket.header }}", "header") == "Re: A Bcc: x@y"


@pytest.mark.case("M02")
@given(
    st.text(max_size=20),
    st.sampled_from(["append: v", "prepend: v", "replace: 'N', v", "default: v", "strip", "slice: 0, 9", "upcase"]),
)
def test_no_value_gets_into_html_unescaped_whatever_filter_it_goes_through(value: str, how: str) -> None:
    html = shown(
        f"{{{{ 'N' | {how} }}}}{{{{ v | {how} }}}}{{% capture c %}}{{{{ v }}}}{{% endcapture %}}{{{{ c }}}}",
        "html",
        v=value + "<&",
    )
    assert "<" not in html


@pytest.mark.case("M02")
@given(st.text(max_size=30))
def test_no_value_breaks_a_header(value: str) -> None:
    header = shown("X: {{ v }}{{ 'a\nb' }}", "header", v=value)
    assert header.splitlines() == [header]
    assert header.isprintable() or not any(ord(letter) < 32 for letter in header)


@pytest.mark.case("M04")
@pytest.mark.parametrize(
    "source",
    [
        "{{ ticket.__class__ }}",
        "{{ ticket.__class__.__mro__ }}",
        "{{ ticket.items }}",
        "{{ ticket.subject.__len__ }}",
        "{{ ticket.tenant.webhook_secret }}",
        "{{ ticket.delete }}",
        "{{ forloop.__class__ }}",
        "{{ now }}{{ today }}",
    ],
)
def test_nothing_but_the_given_values_is_reachable(source: str) -> None:
    assert check(source, KNOWN)
    assert shown(source) == ""


@pytest.mark.case("M04")
@pytest.mark.parametrize(
    "source", ["{% include 'x' %}", "{% render 'x' %}", "{% liquid echo 1 %}", "{% increment a %}"]
)
def test_tags_that_load_or_count_do_not_exist(source: str) -> None:
    with pytest.raises(TemplateError, match="unexpected tag"):
        shown(source)


@pytest.mark.case("M04")
def test_format_strings_mean_nothing_and_objects_are_refused() -> None:
    assert shown("{0.__globals__} {ticket}") == "{0.__globals__} {ticket}"
    with pytest.raises(TemplateError, match="object"):
        shown("{{ x }}", x=object())


@pytest.mark.case("M05")
def test_dates_are_shown_in_the_tenants_zone_by_documented_tokens_only() -> None:
    assert shown("{{ d | date: '%Y-%m-%d' }}", d="2025-12-31") == "2025-12-31"
    assert shown("{{ ticket.created_at | date: '%Y-%m-%d %H:%M' }}") == "2026-01-01 01:30"
    assert shown("{{ ticket.created_at | date }}") == "2026-01-01 01:30"
    assert shown("{{ d | date: '%A %e %B %y, %I:%M:%S %p %z %%' }}", d=datetime(2026, 3, 1, 22, 5, 9, tzinfo=UTC)) == (
        "Monday 2 March 26, 12:05:09 AM +0200 %"
    )
    for token in ("%G", "%j", "%U", "%c", "%-d", "%"):
        with pytest.raises(TemplateError, match="token"):
            shown("{{ ticket.created_at | date: '" + token + "' }}")
    with pytest.raises(TemplateError, match="not a date"):
        shown("{{ ticket.subject | date: '%Y' }}")


@pytest.mark.case("M05")
@given(st.dates().map(lambda day: day.isoformat()), st.sampled_from(sorted(DATE_TOKENS)))
def test_every_token_agrees_with_the_standard_librarys(day: str, token: str) -> None:
    expected = datetime.fromisoformat(day).strftime(f"%{token}")
    if token == "Y":
        expected = expected.zfill(4)
    ours = shown("{{ d | date: '%" + token + "' }}", d=day)
    assert ours == (expected.lstrip() if token == "e" else expected)


def test_paths_become_nested_values_and_a_link_keeps_its_number() -> None:
    values = {"subject": "a", "assignee": 5, "assignee.name": "Ann", "customer.plan": "gold", "customer.firm.name": "F"}
    expected = {
        "subject": "a",
        "assignee": {"id": 5, "name": "Ann"},
        "customer": {"plan": "gold", "firm": {"name": "F"}},
    }
    assert nested(values) == expected
    assert nested(dict(reversed(values.items()))) == expected


def test_values_are_made_plain_and_cut_to_size() -> None:
    assert plain({"a": Decimal("1.50"), "b": (1, 2), "c": {3, 2}}) == {"a": "1.50", "b": [1, 2], "c": [2, 3]}
    assert len(plain(list(range(5000)))) == 200
    deep: Any = "x"
    for _level in range(20):
        deep = [deep]
    with pytest.raises(TemplateError):
        plain(deep)


BIG = {"big": [f"item {number}" for number in range(5000)], "long": "ab " * 30_000}
ATTACKS = {
    "replace that multiplies": "{{ 'aaaaaaaaaa'" + " | replace: 'a','aaaaaaaaaa'" * 9 + " }}",
    "sorting in a loop": "{% for i in (1..1000) %}{% assign x = big | sort %}{% endfor %}",
    "filters on a long text in a loop": "{% for i in (1..1000) %}{% assign x = long | upcase | squish %}{% endfor %}",
    "huge range": "{% for i in (1..100000000) %}{% endfor %}",
    "nested ranges": "{% for i in (1..1000) %}{% for j in (1..1000) %}{% endfor %}{% endfor %}",
    "doubling by append": "{% assign a = 'aaaaaaaaaa' %}" + "{% assign a = a | append: a %}" * 40,
    "doubling by capture": "{% capture a %}aaaaaaaaaa{% endcapture %}"
    + "{% capture a %}{{a}}{{a}}{% endcapture %}" * 40,
    "deep ifs": "{% if a %}" * 1500,
    "deep brackets": "{{ a" + "[a" * 3000 + "]" * 3000 + " }}",
    "thousands of terms": "{% if " + " or ".join(["1==2"] * 2400) + " %}{% endif %}",
    "hundreds of terms in a loop": "{% for i in (1..1000) %}{% if "
    + " or ".join(["1==2"] * 400)
    + " %}{% endif %}{% endfor %}",
    "searching a long text in a loop": "{% for i in (1..1000) %}{% if long contains 'zz' %}{% endif %}{% endfor %}"
    * 20,
    "thousands of filters": "{{ 'a'" + " | upcase" * 2100 + " }}",
    "huge number": "{{ 9 " + "| times: 99999999999 " * 400 + "}}",
    "huge exponent": "{{ '1e999999' | plus: 1 | ceil }}",
    "split to letters and join": "{{ long | split: '' | join: long }}",
    "join with a long text": "{{ big | join: long }}",
    "replace of nothing": "{{ long | replace: '', long }}",
    "too long a source": "x" * 20_001 + "{{ a }}",
}


@contextmanager
def bounded(*, seconds: float, megabytes: float) -> Iterator[None]:
    tracemalloc.start()
    began = time.process_time()
    try:
        yield
    finally:
        used, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert used < seconds
    assert peak < megabytes * 1e6


@pytest.mark.parametrize("target", ["text", "html"])
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_an_attack_ends_in_an_error_or_in_little_work(name: str, target: str) -> None:
    with bounded(seconds=2, megabytes=20):
        assert len(shown_or_refused(ATTACKS[name], target, **BIG)) <= 64_000


@pytest.mark.parametrize("name", ["replace that multiplies", "doubling by append", "split to letters and join"])
def test_growth_is_refused_before_anything_has_grown(name: str) -> None:
    with bounded(seconds=1, megabytes=2), pytest.raises(TemplateError, match="too large"):
        shown(ATTACKS[name], **BIG)


@given(st.text(st.sampled_from("{}%| abc'\"ticket.subject:,[]()0"), max_size=60))
def test_any_source_renders_or_is_refused_in_words(source: str) -> None:
    assert isinstance(shown_or_refused(source), str)
