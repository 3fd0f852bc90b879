"""Takes what a person's runs were given and answered out of their rows; what names nobody stays."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from automation.core.erasing import ERASED, blank

_SAID = re.compile(r"[^:\"'“«<{(\[]*")
Scrub = Callable[[Any], Any]


def literals(definition: Any) -> Iterator[str]:
    """The texts that a rule's author wrote, those with something to fill in apart."""
    if isinstance(definition, str):
        if "{{" not in definition and "{%" not in definition:
            yield definition
    elif isinstance(definition, Mapping | list):
        for one in definition.values() if isinstance(definition, Mapping) else definition:
            yield from literals(one)


def emptied_error(error: str, scrub: Scrub) -> str:
    """An error's beginning, up to what it quotes: "The receiver answered 400: [erased]"."""
    said = _SAID.match(error)
    head = said.group() if said else ""
    rest = error[len(head) :]
    if not rest or rest.startswith(ERASED):
        return str(scrub(error))
    return f"{scrub(head)}{': ' if rest.startswith(':') else ''}{ERASED}"


def emptied_letter(snapshot: Any, facts: Callable[[Any, Any], Any], kept: Collection[str], scrub: Scrub) -> Any:
    """A dead letter's snapshot: `facts` makes of an event's id and facts what is left of them.

    The rule, the step's path and action, and the error's beginning stay.
    """
    if not isinstance(snapshot, Mapping) or not isinstance(snapshot.get("event"), Mapping):
        return blank(snapshot, kept)
    event, step = snapshot["event"], snapshot.get("step") or {}
    return {
        **{name: blank(value, kept) for name, value in snapshot.items()},
        "rule": scrub(snapshot.get("rule")),
        "event": {**event, "facts": facts(event.get("id"), event.get("facts") or {})},
        "step": {**step, "input": blank(step.get("input"), kept)},
        "error": emptied_error(str(snapshot.get("error") or ""), scrub),
    }
