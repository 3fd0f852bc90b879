"""Splits a template into texts, outputs and tags in one pass, in time that grows with its length and no faster."""

import re
from collections.abc import Iterator

from liquid.builtin.expressions import tokenize
from liquid.exceptions import LiquidSyntaxError
from liquid.stream import TokenStream
from liquid.token import (
    TOKEN_COMMENT,
    TOKEN_CONTENT,
    TOKEN_DOT,
    TOKEN_EOF,
    TOKEN_EXPRESSION,
    TOKEN_OUTPUT,
    TOKEN_TAG,
    TOKEN_WORD,
    Token,
)

MAX_STATEMENT = 4000
"""Characters between two delimiters: reading an expression takes the square of its length in the worst case."""
_OPENING = re.compile(r"\{[{%]")
_NAME = re.compile(r"#|\w+")


def tokens(source: str) -> Iterator[Token]:
    """The tokens that the library's parser reads. LiquidSyntaxError for a statement that doesn't end, or is too long.

    The library's own lexer is one regular expression, which a text of opening braces keeps busy for a minute.
    """
    position, depth, comment, trim = 0, 0, 0, False
    while position < len(source):
        opening = _OPENING.search(source, position)
        start = opening.start() if opening else len(source)
        end = _end(source, start) if opening else start
        inner = source[start + 2 : end]
        if not depth:
            yield from _text(source, position, start, trim=trim, trim_end=inner.startswith("-"))
        position, trim = end + 2, inner.endswith("-")
        if opening is None:
            break
        found = list(_statement(source, start, inner))
        name = found[0].value if found[0].kind == TOKEN_TAG else ""
        if depth and name == "endcomment":
            depth -= 1
            if not depth:
                yield Token(TOKEN_COMMENT, source[comment:start], comment, source)
        elif name == "comment":
            comment = comment if depth else position
            depth += 1
            found = found if depth == 1 else []
        if not depth or name == "comment":
            yield from found


class Stream(TokenStream):  # type: ignore[misc]
    """The tokens of a template; what is inside a tag is read so that a name may be a word of the language."""

    def into_inner(self, *, tag: Token | None = None, eat: bool = True) -> TokenStream:
        """The tokens of the expression that comes next; with `eat` it is taken off."""
        token = self.current
        if token.kind != TOKEN_EXPRESSION:
            raise LiquidSyntaxError("missing expression", token=tag or token)
        if eat:
            next(self)
        return TokenStream(words(token.value, token))


def words(expression: str, token: Token) -> Iterator[Token]:
    """The tokens of an expression: after a dot `limit`, `for`, `true`… are names as any other word is."""
    before = ""
    for item in tokenize(expression, token):
        is_word = (
            before == TOKEN_DOT and item.kind == item.value
        )  # the library's kind of such a word is the word itself
        yield item._replace(kind=str(TOKEN_WORD)) if is_word else item
        before = item.kind


def _text(source: str, start: int, end: int, *, trim: bool, trim_end: bool) -> Iterator[Token]:
    """The text between two statements, without the white space that a hyphen beside it takes away."""
    text = source[start:end]
    text = text.lstrip() if trim else text
    text = text.rstrip() if trim_end else text
    if text:
        yield Token(TOKEN_CONTENT, text, start, source)


def _end(source: str, start: int) -> int:
    """Where the statement that begins there is closed."""
    closing = "}}" if source[start + 1] == "{" else "%}"
    end = source.find(closing, start + 2)
    if end < 0:
        raise _wrong(f"expected '{closing}', found end of file", source, start)
    if end - start > MAX_STATEMENT:
        raise _wrong(f"a statement has at most {MAX_STATEMENT} characters", source, start)
    return end


def _statement(source: str, start: int, inner: str) -> Iterator[Token]:
    body = inner.removeprefix("-")
    offset = start + 2 + len(inner) - len(body)
    body = body.removesuffix("-").rstrip()
    offset += len(body) - len(body.lstrip())
    body = body.lstrip()
    if source[start + 1] == "{":
        yield Token(TOKEN_OUTPUT, source[start : start + 4 + len(inner)], start, source)
        yield Token(TOKEN_EXPRESSION, body, offset, source)
        return
    name = _NAME.match(body)
    if name is None:
        raise _wrong("missing tag name", source, start)
    yield Token(TOKEN_TAG, name[0], offset, source)
    rest = body[name.end() :].lstrip()
    if rest:
        yield Token(TOKEN_EXPRESSION, rest, offset + len(body) - len(rest), source)


def _wrong(text: str, source: str, start: int) -> LiquidSyntaxError:
    return LiquidSyntaxError(text, token=Token(TOKEN_EOF, source[start : start + 2], start, source))
