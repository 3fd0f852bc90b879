"""Reads a definition from the text that a person typed, and finds the line of each part in the text that is shown."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

LARGEST = 256 * 1024  # characters; what is more isn't even read. The limit of a definition itself is lower
DEEPEST = 60
INDENT = 2


class TextError(ValueError):
    """The text isn't a definition; the message says why, `line` where (counted from 1, None for the whole)."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read(text: str) -> dict[str, Any]:
    """The JSON object in the text. Raises `TextError` for anything that isn't one, or that can't be stored."""
    if len(text) > LARGEST:
        raise TextError(_("The text is too long: %(n)d characters at most.") % {"n": LARGEST})
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
    except json.JSONDecodeError as problem:
        message = _("This is not JSON: %(problem)s, column %(column)d.")
        raise TextError(message % {"problem": problem.msg, "column": problem.colno}, line=problem.lineno) from problem
    except RecursionError as problem:
        raise TextError(_too_deep()) from problem
    except TextError:
        raise
    except ValueError as problem:  # a number of thousands of digits
        raise TextError(_("A number has too many digits.")) from problem
    if not isinstance(found, dict):
        raise TextError(_("A definition is a JSON object: it begins with { and ends with }."))
    if _depth(found) > DEEPEST:
        raise TextError(_too_deep())
    if any(_unstorable(part) for part in _strings(found)):
        raise TextError(_("A text contains a character that can't be stored: a NUL or half of a pair."))
    return found


def write(definition: Any) -> str:
    """The text in which a definition is shown and edited."""
    return json.dumps(definition, indent=INDENT, ensure_ascii=False)


def lines(definition: Any) -> dict[str, int]:
    """The line, counted from 1, on which `write` puts the value of each JSON pointer."""
    found: dict[str, int] = {}
    _place(definition, "", 1, found)
    return found


def nearest(pointer: str, found: dict[str, int]) -> int:
    """The line of a pointer, or of the nearest part around it that exists: a missing key has no line of its own."""
    while pointer and pointer not in found:
        pointer = pointer.rpartition("/")[0]
    return found.get(pointer, 1)


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
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _value in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise TextError(_("“%(key)s” is there twice in the same object; only one of the two can count.") % {"key": twice})
    return found


def _constant(name: str) -> Any:
    raise TextError(_("%(name)s is not a number in JSON.") % {"name": name})


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise TextError(_("The number %(number)s is too large.") % {"number": text[:40]})
    return number


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [part for container in level for part in _parts(container)]
    return depth


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    if isinstance(value, dict):
        yield from value
    for part in _parts(value):
        yield from _strings(part)


def _unstorable(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def _too_deep() -> str:
    return _("The text is nested too deeply: %(n)d levels at most.") % {"n": DEEPEST}
