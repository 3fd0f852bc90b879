"""Reads a definition from the text that a person typed, and finds the line of each part in the text that is shown."""

import json
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

LARGEST = 256 * 1024  # characters; what is more isn't even read. The limit of a definition itself is lower
INDENT = 2
_WORDS = (
    *(
        "schema_version",
        "trigger",
        "condition",
        "again",
        "limit",
        "imports",
        "id",
        "kind",
        "action",
        "version",
        "note",
        "off",
    ),
    *("field", "op", "value", "value_of", "all", "any", "none", "model", "on", "fields", "sources", "params"),
    *("for", "ends", "effect", "retry", "timeout", "if_it_fails", "if", "arms", "steps", "otherwise"),
)
_RANK = {word: rank for rank, word in enumerate(_WORDS)}


class TextError(ValueError):
    """The text isn't a definition; the message says why, `line` where (counted from 1, None for the whole)."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read(text: str) -> dict[str, Any]:
    """The JSON object in the text. Raises `TextError` for anything that isn't one; its contents aren't judged here."""
    if len(text) > LARGEST:
        raise TextError(_("The text is too long: %(n)d characters at most.") % {"n": LARGEST})
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as problem:
        message = _("This is not JSON: %(problem)s, in column %(column)d.")
        raise TextError(message % {"problem": problem.msg, "column": problem.colno}, line=problem.lineno) from problem
    except RecursionError as problem:
        raise TextError(_("The text is nested too deeply.")) from problem
    except TextError:
        raise
    except ValueError as problem:  # a number of thousands of digits
        raise TextError(_("A number has too many digits.")) from problem
    if not isinstance(found, dict):
        raise TextError(_("A definition is a JSON object: it begins with { and ends with }."))
    return found


def write(definition: Any) -> str:
    """The text in which a definition is shown and edited: its words in the order in which people think of them."""
    return json.dumps(_ordered(definition), indent=INDENT, ensure_ascii=False)


def lines(definition: Any) -> dict[str, int]:
    """The line, counted from 1, on which `write` puts the value of each JSON pointer."""
    found: dict[str, int] = {}
    _place(_ordered(definition), "", 1, found)
    return found


def nearest(pointer: str, found: dict[str, int]) -> int:
    """The line of a pointer, or of the nearest part around it that exists: a missing key has no line of its own."""
    while pointer and pointer not in found:
        pointer = pointer.rpartition("/")[0]
    return found.get(pointer, 1)


def _ordered(value: Any) -> Any:
    """The value with known words first and in their order; the database keeps no order of its own."""
    if isinstance(value, dict):
        words = sorted(value, key=lambda word: (_RANK.get(word, len(_RANK)), word))
        return {word: _ordered(value[word]) for word in words}
    return [_ordered(part) for part in value] if isinstance(value, list) else value


def _place(value: Any, pointer: str, line: int, found: dict[str, int]) -> int:
    """Notes the line of a value and its parts; answers the last line that it takes."""
    found[pointer] = line
    entries: Sequence[tuple[str, Any]] = ()
    if isinstance(value, dict):
        entries = [(key.replace("~", "~0").replace("/", "~1"), part) for key, part in value.items()]
    elif isinstance(value, list):
        entries = [(str(index), part) for index, part in enumerate(value)]
    if not entries:
        return line
    for key, part in entries:
        line = _place(part, f"{pointer}/{key}", line + 1, found)
    return line + 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            message = _("“%(key)s” is there twice in the same object; only one of the two can count.")
            raise TextError(message % {"key": key})
        found[key] = value
    return found


def _constant(name: str) -> Any:
    raise TextError(_("%(name)s is not a number in JSON.") % {"name": name})
