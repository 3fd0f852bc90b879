"""A person's words are found however they are written, and nothing else is touched."""

import html
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.erasing import ERASED, Needles, blank, linked_facts, own_facts

BOB = Needles.of({"Bob O'Neill", "bob@example.com", "+49 170 1234567", "Zoë"})
words = st.sampled_from(["Bob O'Neill", "bob@example.com", "+49 170 1234567"])
ways = st.sampled_from([str, str.upper, quote, quote_plus, html.escape, lambda word: json.dumps(word)[1:-1]])
around = st.sampled_from(["", " ", "<", ">", '"', ", ", "\n", "=", "&", ":", "(", "…"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["open", "Bobby", "abob@example.com", "x" * 20, "17012345"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "subject"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(words, ways, around, around)
def test_a_word_is_found_in_every_way_of_writing_it(word: str, way: Any, before: str, after: str):
    found = BOB.scrub({"text": [f"{before}{way(word)}{after}"]})
    assert found == {"text": [f"{before}{ERASED}{after}"]}


@pytest.mark.parametrize("given", ["Dear\nBob O'Neill", "Hi\r\nbob@example.com", "\tJürgen Müller", "é JÜRGEN MÜLLER"])
def test_a_word_is_found_behind_an_escape_in_a_text_that_is_json(given: str):
    needles = Needles.of({*BOB.words, "Jürgen Müller"})
    found = needles.scrub(json.dumps({"answer": given}))
    assert json.loads(found)["answer"].endswith(ERASED)
    assert needles.scrub(r"at\abob@example.com") == r"at\abob@example.com"


@given(values)
def test_what_has_none_of_the_words_is_as_it_was(value: Any):
    assert BOB.scrub(value) == value


@given(values)
def test_blank_leaves_no_text_and_the_same_shape(value: Any):
    once = blank(value)
    assert blank(once) == once
    if isinstance(value, dict):
        assert once.keys() == value.keys()
    if isinstance(value, str):
        assert once == ERASED


def test_a_single_name_is_too_common_unless_it_is_asked_for():
    assert BOB.too_common == ("Zoë",)
    assert BOB.scrub("Zoë called") == "Zoë called"
    asked = Needles.of({"Zoë"}, also=["Zoë"])
    assert asked.too_common == ()
    assert asked.scrub("Zoë called, ZOË wrote, Zoëlla didn't") == f"{ERASED} called, {ERASED} wrote, Zoëlla didn't"


@pytest.mark.parametrize("nothing", [Needles.of(()), Needles.of({"", "  ", ERASED})])
def test_without_words_nothing_is_found(nothing: Needles):
    assert nothing.words == ()
    assert nothing.scrub("Bob") == "Bob"


def test_of_a_persons_own_event_only_its_kind_is_left():
    facts = {"change": "updated", "before": {"name": "A"}, "after": {"name": "B"}, "snapshot": {"plan": "gold"}}
    assert own_facts({**facts, "source": "person"}) == {
        "change": "updated",
        "before": {},
        "after": {},
        "snapshot": {},
        "data": {},
        "cut": [],
        "source": "person",
        "erased": ["*"],
    }


def test_of_an_event_about_a_ticket_of_theirs_states_are_left():
    snapshot = {
        "subject": "My leg",
        "status": "open",
        "customer": 12,
        "customer.plan": "gold",
        "customer.name": "Bob",
        "tags": ["leg", "Bob O'Neill"],
    }
    found = linked_facts(
        {"change": "updated", "before": {"status": "new"}, "after": {"status": "open"}, "snapshot": snapshot},
        personal={"customer.name"},
        texts={"subject"},
        needles=BOB,
    )
    assert found["snapshot"] == {
        "subject": ERASED,
        "status": "open",
        "customer": 12,
        "customer.plan": "gold",
        "customer.name": None,
        "tags": ["leg", ERASED],
    }
    assert found["before"] == {"status": "new"}
    assert found["erased"] == ["customer.name", "subject", "tags"]
