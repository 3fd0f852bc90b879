"""The filters that templates may use, each bounded in what it may make and in how much work it may do."""

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from liquid.builtin.filters import array, math, misc, string
from liquid.exceptions import FilterValueError
from liquid.undefined import is_undefined

from automation.core.folding import is_blank
from automation.core.template_dates import formatted

MAX_TEXT = 64_000
MAX_ITEMS = 200
MAX_DIGITS = 30
WORK = 2_000_000
"""Characters that all filters of one rendering may look at together."""
_CALL = 50
"""What a call costs besides the characters."""
_NUMBER = re.compile(rf"\s*-?\d{{0,{MAX_DIGITS}}}(\.\d{{0,{MAX_DIGITS}}})?\s*", re.ASCII)
Filter = Callable[..., Any]


class Ready(str):
    """A text that is escaped for its target already."""

    __slots__ = ()


def too_much(what: str) -> FilterValueError:
    """The error of a filter that would pass a limit."""
    return FilterValueError(f"{what} is too large for a template", token=None)


def required(value: Any) -> Any:
    """The value; an error when it is empty."""
    if value is None or is_undefined(value) or value == [] or (isinstance(value, str) and is_blank(value)):
        raise FilterValueError("a required value is empty", token=None)
    return value


def as_json(value: Any) -> str:
    """The value as JSON, a text with its quotes."""
    return Ready(json.dumps(None if is_undefined(value) else value, ensure_ascii=False))


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple | range):
        if len(value) > MAX_ITEMS:
            raise too_much("a list")
        return 8 + sum(len(item) if isinstance(item, str) else 8 for item in value)
    return 8


def _grown(name: str, value: Any, arguments: tuple[Any, ...]) -> int:
    """How long the result of a filter that multiplies will be, found before it is made."""
    texts = [str(item) for item in arguments]
    if name == "replace":
        text, wanted, new = str(value), texts[0] if texts else "", texts[1] if len(texts) > 1 else ""
        count = text.count(wanted)
        return len(text) + count * max(0, len(new) - len(wanted))
    if name == "join" and isinstance(value, list | tuple | range):
        return _size(value) + len(value) * len(texts[0] if texts else " ")
    if name == "split":
        count = str(value).count(texts[0]) if texts and texts[0] else len(str(value))
        if count >= MAX_ITEMS:
            raise too_much("a list")
    return 0


def _check_number(value: Any) -> None:
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise too_much("a number")
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise FilterValueError(f"{value[:40]!r} is not a number", token=None)


def _guarded(name: str, function: Filter, *, numeric: bool) -> Filter:
    wants_environment = getattr(function, "with_environment", False)
    wants_context = function is formatted

    @wraps(function)
    def guarded(value: Any, *arguments: Any, context: Any, **options: Any) -> Any:
        budget = context.tag_namespace["work"]
        budget[0] -= _CALL + _size(value) + sum(_size(argument) for argument in arguments)
        if budget[0] < 0:
            raise too_much("the work of all filters")
        for operand in (value, *arguments) if numeric else ():
            _check_number(operand)
        if _grown(name, value, arguments) > MAX_TEXT:
            raise too_much("a text")
        if wants_environment:
            options["environment"] = context.env
        if wants_context:
            options["context"] = context
        return _checked(function(value, *arguments, **options))

    guarded.with_context = True  # type: ignore[attr-defined]
    guarded.with_environment = False  # type: ignore[attr-defined]
    return guarded


def _checked(result: Any) -> Any:
    if isinstance(result, str) and len(result) > MAX_TEXT:
        raise too_much("a text")
    if isinstance(result, int):
        _check_number(result)
    _size(result)
    return result


_TEXT = (
    "append prepend capitalize downcase upcase strip lstrip rstrip squish truncate truncatewords replace replace_first "
    "remove remove_first slice_ split escape newline_to_br strip_newlines url_encode"
)
_NUMERIC = "abs_ at_least at_most ceil floor round_ plus minus times divided_by modulo"
_LISTS = "join first last sort uniq reverse compact"


def _all_filters() -> dict[str, Filter]:
    plain = {name: getattr(string, name) for name in _TEXT.split()}
    plain |= {name: getattr(array, name) for name in _LISTS.split()}
    plain |= {"size": misc.size, "default": misc.default, "date": formatted, "required": required, "json": as_json}
    filters = {name.rstrip("_"): _guarded(name, function, numeric=False) for name, function in plain.items()}
    for name in _NUMERIC.split():
        filters[name.rstrip("_")] = _guarded(name, getattr(math, name), numeric=True)
    return filters


FILTERS: dict[str, Filter] = _all_filters()
