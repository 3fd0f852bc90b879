"""Definitions are read from what people type, and every problem finds its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.web import texts

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(WORDS, inside, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "This is not JSON", 1),
        ("{\n  oops\n}", "This is not JSON", 2),
        ("[1]", "begins with {", None),
        ('{"a": NaN}', "NaN is not a number", None),
        ('{"a": 1, "a": 2}', "“a” is there twice", None),
        ('{"a": ' + "9" * 5000 + "}", "too many digits", None),
        ("[" * 200_000, "nested too deeply", None),
        (" " * 300_000, "too long", None),
    ],
)
def test_a_text_that_is_no_definition_is_refused_with_the_place(text, message, line):
    with pytest.raises(texts.TextError, match=message) as refused:
        texts.read(text)
    assert refused.value.line == line


def test_a_definition_is_written_in_the_order_in_which_people_think():
    written = texts.write({"steps": [{"params": {}, "action": "x", "id": "a"}], "condition": None, "trigger": {}})
    keys = [line.split('"')[1] for line in written.splitlines() if '"' in line]
    assert keys == ["trigger", "condition", "steps", "id", "action", "params"]


@given(st.dictionaries(WORDS, VALUES, max_size=5))
def test_what_is_written_reads_back_as_it_was(definition):
    assert texts.read(texts.write(definition)) == definition


@given(st.dictionaries(WORDS, VALUES, max_size=5))
def test_every_part_is_on_the_line_that_is_said(definition):
    shown = texts.write(definition).split("\n")
    for pointer, line in texts.lines(definition).items():
        if pointer:
            name = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            begins = shown[line - 1].strip()
            assert begins.startswith(f"{json.dumps(name, ensure_ascii=False)}:") or name.isdigit()


def test_a_problem_of_what_is_missing_stands_where_it_should_be():
    found = texts.lines({"trigger": {"params": {}}, "steps": []})
    assert texts.nearest("/trigger/kind", found) == found["/trigger"]
    assert texts.nearest("/nowhere/at/all", found) == 1
