"""What a definition must not be, whatever it says: too big, too deep, with words that aren't available or ids twice."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from automation.core.errors import DefinitionError, Problem
from automation.definitions.tree import Part

MAX_BYTES = 64 * 1024
MAX_LEVELS = 60
MAX_STEPS, MAX_CONDITIONS = 100, 50
MAX_GROUP_DEPTH, MAX_NESTING = 3, 4
LATER_STEPS = frozenset({"wait", "callback", "parallel", "for_each", "start_rule"})
LATER_TRIGGERS = frozenset({"elapsed", "schedule", "incoming_webhook"})
LATER_ACTIONS = frozenset({"post_message", "http_request"})
_LATER_WORDS = {"on_failure": ("keep",)}
_LATER_STEP_WORDS = ("only_in", "calendar", "until")


def load_json(text: str | bytes) -> Any:
    """JSON text as plain values; DefinitionError when it isn't JSON, is too long or too deeply nested."""
    size = len(text if isinstance(text, bytes) else text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise DefinitionError([_too_big()])
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise DefinitionError([_too_deep("")]) from None
    except ValueError as error:
        message = _("This is not JSON: %(error)s") % {"error": error}
        raise DefinitionError([Problem("", message, "not_json")]) from None


def check_size(data: Any) -> None:
    """DefinitionError when values are nested too deeply, aren't JSON, hold what no database text can, or are too big.

    Nothing may look into the data by recursion before this has passed.
    """
    problems = list(_odd_values(data))
    if problems:
        raise DefinitionError(problems)
    try:
        size = len(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (TypeError, ValueError) as error:
        message = _("This is not JSON: %(error)s") % {"error": error}
        raise DefinitionError([Problem("", message, "not_json")]) from None
    if size > MAX_BYTES:
        raise DefinitionError([_too_big()])


def over_limits(found: list[Part]) -> Iterator[Problem]:
    """The limits on the number and nesting of steps and conditions that the definition passes, each by its name."""
    for kind, limit, code, message in (
        ("step", MAX_STEPS, "too_many_steps", _("A rule has at most %(limit)s steps; this one has %(count)s.")),
        (
            "condition",
            MAX_CONDITIONS,
            "too_many_conditions",
            _("A rule has at most %(limit)s conditions; this one has %(count)s."),
        ),
    ):
        count = sum(part.kind == kind for part in found)
        if count > limit:
            pointer = "/steps" if kind == "step" else "/condition"
            yield Problem(pointer, message % {"limit": limit, "count": count}, code)
    for part in found:
        if part.kind == "group" and part.depth == MAX_GROUP_DEPTH + 1:
            message = _("Groups of conditions are at most %(limit)s levels deep.") % {"limit": MAX_GROUP_DEPTH}
            yield Problem(part.pointer, message, "groups_too_deep")
        if part.kind == "step" and part.depth == MAX_NESTING + 1:
            message = _("Steps are nested at most %(limit)s levels deep.") % {"limit": MAX_NESTING}
            yield Problem(part.pointer, message, "steps_too_deep")


def double_ids(found: list[Part]) -> Iterator[Problem]:
    """Every part whose id an earlier part has already."""
    seen: Counter[str] = Counter()
    for part in found:
        identity = part.value.get("id")
        if isinstance(identity, str):
            seen[identity] += 1
            if seen[identity] > 1:
                message = _("The id “%(id)s” is used twice; ids are unique in a rule.") % {"id": identity}
                yield Problem(f"{part.pointer}/id", message, "double_id")


def not_available(data: dict[str, Any], found: list[Part]) -> Iterator[Problem]:
    """Words of rules that this version knows of but can't do, each by its name."""
    for word, allowed in _LATER_WORDS.items():
        if word in data and data[word] not in allowed:
            yield _unavailable(f"/{word}", word)
    trigger = data.get("trigger")
    kind = trigger.get("kind") if isinstance(trigger, dict) else None
    if isinstance(kind, str) and kind in LATER_TRIGGERS:
        yield _unavailable("/trigger/kind", kind)
    for part in found:
        if part.kind == "step":
            yield from _step_not_available(part)


def _step_not_available(part: Part) -> Iterator[Problem]:
    step = part.value
    for key, later in (("kind", LATER_STEPS), ("action", LATER_ACTIONS)):
        if isinstance(step.get(key), str) and step[key] in later:
            yield _unavailable(f"{part.pointer}/{key}", step[key])
    for word in _LATER_STEP_WORDS:
        if word in step:
            yield _unavailable(f"{part.pointer}/{word}", word)
    if isinstance(step.get("if_it_fails"), list):
        message = _("A list of steps for “if_it_fails” is not available yet.")
        yield Problem(f"{part.pointer}/if_it_fails", message, "not_available")


def _unavailable(pointer: str, word: str) -> Problem:
    return Problem(pointer, _("“%(word)s” is not available yet.") % {"word": word}, "not_available")


def _odd_values(data: Any) -> Iterator[Problem]:
    """Without recursion: text that no database holds, and the first place that lies too deep."""
    waiting: list[tuple[str, Any, int]] = [("", data, 0)]
    while waiting:
        pointer, value, level = waiting.pop()
        if level > MAX_LEVELS:
            yield _too_deep(pointer)
            return
        if isinstance(value, dict):
            pairs = [(str(key), item) for key, item in value.items()]
            bad_keys = [key for key, _item in pairs if _unstorable(key)]
            if bad_keys:
                yield _bad_text(pointer)
                continue
            waiting += [(f"{pointer}/{_escape(key)}", item, level + 1) for key, item in pairs]
        elif isinstance(value, list):
            waiting += [(f"{pointer}/{index}", item, level + 1) for index, item in enumerate(value)]
        elif isinstance(value, str) and _unstorable(value):
            yield _bad_text(pointer)


def _unstorable(text: str) -> bool:
    return "\x00" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text))


def _bad_text(pointer: str) -> Problem:
    return Problem(pointer, _("A text holds a character that can't be stored (NUL or half a pair)."), "bad_character")


def _too_big() -> Problem:
    return Problem("", _("A definition has at most 64 KB."), "too_big")


def _too_deep(pointer: str) -> Problem:
    return Problem(pointer, _("The JSON is nested too deeply."), "too_deep")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
