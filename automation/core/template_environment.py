"""The guarded environments in which templates are read and rendered, one for each target."""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import liquid
from liquid.builtin import content, illegal, output
from liquid.builtin.expressions import FilteredExpression
from liquid.builtin.tags import (
    assign_tag,
    capture_tag,
    case_tag,
    comment_tag,
    for_tag,
    if_tag,
    inline_comment_tag,
    unless_tag,
)
from liquid.parser import get_parser
from liquid.stream import TokenStream
from liquid.stringify import to_liquid_string
from liquid.token import TOKEN_EXPRESSION, TOKEN_OUTPUT, TOKEN_REQUIRED, TOKEN_WORD, Token

from automation.core.template_filters import FILTERS, MAX_TEXT, Ready
from automation.core.template_lexer import Stream, tokens, words

MAX_SOURCE = 20_000
TARGETS = frozenset({"text", "html", "header", "url", "json"})
_MAX_LOOPS = 2000
_SOURCE_TIMES_LOOPS = 500_000
"""Characters of source times rounds of loops: where one is large the other is small, which bounds the work."""
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]+")


def in_url(value: Any) -> str:
    """A value as a part of a URL."""
    return quote(to_liquid_string(value, False), safe="")


def in_json(value: Any) -> str:
    """A value inside a JSON document: a text as it stands between quotes, anything else as JSON."""
    if isinstance(value, Ready):
        return value
    if value is None or isinstance(value, liquid.Undefined):
        return ""
    return (
        json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def finished(text: str, target: str) -> str:
    """What is done to a whole rendered text: a header has no line breaks and no control characters."""
    return _CONTROL.sub(" ", text).strip() if target == "header" else text


class Environment(liquid.Environment):  # type: ignore[misc]
    """Liquid with a closed list of tags and filters, and limits on all that grows."""

    context_depth_limit = 8
    block_nesting_limit = 15
    output_stream_limit = MAX_TEXT
    local_namespace_limit = MAX_TEXT

    def __init__(self, target: str, loops: int) -> None:
        """`loops` is how many rounds nested loops may make together."""
        self.target = target
        self.loop_iteration_limit = loops
        super().__init__(autoescape=target == "html", strict_filters=True)

    def tokenizer(self) -> Callable[[str], Iterator[Token]]:
        """How sources are split."""
        return tokens

    def _parse(self, source: str) -> Any:
        """The nodes of a source, by our own stream, which tags read their expressions from."""
        return get_parser(self).parse(Stream(self.tokenizer()(source)))

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        """Only these tags and filters exist; nothing loads another template, and nothing counts across loops."""
        escape = _ESCAPES.get(self.target)
        for tag in (
            content.Literal,
            illegal.Illegal,
            if_tag.IfTag,
            unless_tag.UnlessTag,
            case_tag.CaseTag,
            for_tag.ForTag,
            for_tag.BreakTag,
            for_tag.ContinueTag,
            assign_tag.AssignTag,
            comment_tag.CommentTag,
            inline_comment_tag.InlineCommentTag,
        ):
            self.add_tag(tag)
        if escape is None:
            self.add_tag(Output)
            self.add_tag(capture_tag.CaptureTag)
        else:
            self.add_tag(_escaping(escape))  # without capture: what is captured would be escaped twice
        for name, function in FILTERS.items():
            self.add_filter(name, function)


def environment_for(target: str, length: int) -> Environment:
    """The environment for a target and for a source of so many characters."""
    loops = _SOURCE_TIMES_LOOPS // max(length, 1)
    return _environment(target, next((step for step in (_MAX_LOOPS, 1000, 500, 200, 100, 50) if step <= loops), 25))


@lru_cache(maxsize=64)
def _environment(target: str, loops: int) -> Environment:
    return Environment(target, loops)


class Output(output.Output):  # type: ignore[misc]
    """A value written out. `required` is a filter here; the library keeps the word for a tag that doesn't exist."""

    def parse(self, stream: Any) -> Any:
        """Read the statement."""
        token = stream.eat(TOKEN_OUTPUT)
        inner = stream.expect(TOKEN_EXPRESSION)
        items = (item._replace(kind=_as_word(item.kind)) for item in words(inner.value, inner))
        return self.node_class(token, FilteredExpression.parse(self.env, TokenStream(items)))


def _as_word(kind: str) -> str:
    return str(TOKEN_WORD) if kind == TOKEN_REQUIRED else kind


def _escaping(escape: Callable[[Any], str]) -> Any:
    class EscapingNode(output.OutputNode):  # type: ignore[misc]
        __slots__ = ()

        def render_to_output(self, context: Any, buffer: Any) -> int:
            written: int = buffer.write(escape(self.expression.evaluate(context)))
            return written

    class EscapingOutput(Output):
        node_class = EscapingNode

    return EscapingOutput


_ESCAPES: dict[str, Callable[[Any], str]] = {"url": in_url, "json": in_json}
