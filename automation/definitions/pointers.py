"""Errors of pydantic turned into problems at JSON pointers, in words for people."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from automation.core.errors import Problem

TAG = "\x1f"
"""Begins the tags of unions, so that they can be told from names in an error's place."""


def problems_of(error: ValidationError, prefix: str = "") -> list[Problem]:
    """One problem per error, in document order; `prefix` is the pointer of what was validated."""
    return [_problem(item, prefix) for item in error.errors(include_url=False)]


def pointer(*parts: str | int) -> str:
    """A JSON pointer of names and indexes."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def _problem(item: Mapping[str, Any], prefix: str) -> Problem:
    place = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith(TAG))]
    code = item["type"]
    if code in ("union_tag_invalid", "union_tag_not_found"):
        kind = str(item.get("ctx", {}).get("tag", "")).removeprefix(TAG)
        return Problem(f"{prefix}{pointer(*place)}/kind", _unknown_kind(kind), "unknown_kind")
    message = _MESSAGES[code](place, item) if code in _MESSAGES else str(item["msg"])
    return Problem(prefix + pointer(*place), message, code)


def _unknown_kind(kind: str) -> str:
    if kind in ("", "None"):
        return _("A step needs a kind: action, branch, delay or stop.")
    return _("There is no kind of step “%(kind)s”.") % {"kind": kind[:40]}


def _own_words(place: list[Any], item: Mapping[str, Any]) -> str:
    text = str(item.get("ctx", {}).get("error", item["msg"]))
    return text[:1].upper() + text[1:]


def _no_object(place: list[Any], item: Mapping[str, Any]) -> str:
    if item.get("input") is None and place:
        return _("“%(name)s” is missing.") % {"name": place[-1]}
    return _("This must be an object.")


_MESSAGES: dict[str, Callable[[list[Any], Mapping[str, Any]], str]] = {
    "missing": lambda place, item: _("“%(name)s” is missing.") % {"name": place[-1]},
    "extra_forbidden": lambda place, item: _("“%(name)s” is not known here.") % {"name": place[-1]},
    "string_type": lambda place, item: _("This must be a text."),
    "int_type": lambda place, item: _("This must be a whole number."),
    "bool_type": lambda place, item: _("This must be true or false."),
    "list_type": lambda place, item: _("This must be a list."),
    "dict_type": _no_object,
    "model_type": _no_object,
    "model_attributes_type": _no_object,
    "string_pattern_mismatch": lambda place, item: _("This must have the form %(pattern)s.") % item["ctx"],
    "string_too_long": lambda place, item: _("This has at most %(max_length)s characters.") % item["ctx"],
    "string_too_short": lambda place, item: _("This has at least %(min_length)s characters.") % item["ctx"],
    "too_long": lambda place, item: _("This has at most %(max_length)s entries.") % item["ctx"],
    "too_short": lambda place, item: _("This has at least %(min_length)s entries.") % item["ctx"],
    "literal_error": lambda place, item: _("This must be %(expected)s.") % item["ctx"],
    "greater_than_equal": lambda place, item: _("This must be at least %(ge)s.") % item["ctx"],
    "less_than_equal": lambda place, item: _("This must be at most %(le)s.") % item["ctx"],
    "value_error": _own_words,
}
