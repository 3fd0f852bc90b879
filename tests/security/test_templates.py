"""Hostile templates are refused or rendered at once: no text keeps a worker, or a page that checks it, busy."""

import time
from contextlib import suppress
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from liquid.exceptions import LiquidError
from liquid.lex import get_lexer
from liquid.token import TOKEN_COMMENT, TOKEN_CONTENT

from automation.core.errors import TemplateError
from automation.core.template_lexer import tokens
from automation.core.templating import check, render

UTC = ZoneInfo("UTC")
HOSTILE = {
    "opening braces": "{" * 20_000,
    "outputs that don't end": "{{ a " * 4000,
    "tags that don't end": "{% a " * 4000,
    "an output of white space": "{{" + " " * 19_990 + "}}",
    "a tag of white space": "{% if 1 %}{% endif" + " " * 19_000 + "%}",
    "white space that doesn't end": "{%-" + " " * 19_000 + "if",
    "braces in a comment": "{% comment %}" + "{{" * 9_900 + "{% endcomment %}",
    "raw in a comment": "{% comment %}" + "{% raw %}" * 2_000 + "{% endcomment %}",
    "parentheses": "{% if " + "(" * 19_900 + " %}",
    "brackets with quotes": "{{ " + "['" * 9_900 + " }}",
    "many short parentheses": "{% if " + "(" * 3_900 + " %}",
    "terms": "{% if " + " or ".join(["a"] * 3_900) + " %}{% endif %}",
}
SECONDS = 1.0
PIECES = ["{{", "}}", "{%", "%}", "-", " ", "\n", "a", "a.b | c: 'd'", "if", "endif", "'x'", "|", "{", "}", "{{ a }}"]
PIECES += ["{%- if x -%}", "{% comment %}", "{% endcomment %}", "{{- a -}}", "{% # note %}"]


@pytest.mark.case("M04")
@pytest.mark.parametrize("what", HOSTILE)
def test_a_template_that_is_meant_to_take_forever_takes_no_time(what: str) -> None:
    started = time.perf_counter()
    check(HOSTILE[what], frozenset({"a"}))
    with suppress(TemplateError):
        render(HOSTILE[what], {"a": 1}, zone=UTC)
    assert time.perf_counter() - started < SECONDS


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_what_both_lexers_can_read_they_read_alike(source: str) -> None:
    source += "."  # theirs takes a last line break for a text of its own
    theirs, ours = read(get_lexer(), source), read(tokens, source)
    assert None in (theirs, ours) or theirs == ours


def read(lexer: Any, source: str) -> list[tuple[str, str]] | None:
    """The tokens without comments, texts beside each other as one; None for what can't be read."""
    found: list[tuple[str, str]] = []
    try:
        for token in lexer(source):
            if token.kind == TOKEN_CONTENT and found and found[-1][0] == TOKEN_CONTENT:
                found[-1] = (TOKEN_CONTENT, found[-1][1] + token.value)
            elif token.kind != TOKEN_COMMENT:
                found.append((token.kind, token.value))
    except LiquidError:
        return None
    return found
