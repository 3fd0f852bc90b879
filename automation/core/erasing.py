"""Takes a person's words out of stored values."""

import html
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

ERASED = "[erased]"
EVERYTHING, BEFORE = "*", "before:"
LEAST_DIGITS = 5
# No word goes on before it: nothing, or an escape of JSON, whose last sign is a letter or a digit.
_BEFORE = r"(?:(?<!\w)|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:?\d\d)?)?")


@dataclass(frozen=True, slots=True)
class Needles:
    """What identifies a person: addresses, numbers and whole names, in every way in which a text may hold them.

    `too_common` are words that aren't looked for, because other texts are full of them.
    """

    words: tuple[str, ...]
    too_common: tuple[str, ...]
    pattern: "re.Pattern[str] | None"

    @classmethod
    def of(cls, found: Iterable[str], also: Iterable[str] = ()) -> "Needles":
        """Needles from what a person's fields have ever said; `also` is looked for whatever it is."""
        given = {" ".join(word.split()) for word in found} - {"", ERASED}
        asked = {" ".join(word.split()) for word in also} - {""}
        tellable = {word for word in given if is_telling(word)}
        ways = {way for word in tellable | asked for way in _ways(word)}
        longest_first = sorted(ways, key=lambda way: (-len(way), way))
        pattern = _BEFORE + r"(?:" + "|".join(re.escape(way) for way in longest_first) + r")(?!\w)"
        return cls(
            words=tuple(longest_first),
            too_common=tuple(sorted(given - tellable - asked)),
            pattern=re.compile(pattern, re.IGNORECASE) if ways else None,
        )

    def scrub(self, value: Any) -> Any:
        """The value without the needles, deeply: texts and the names of entries; all else is as it was."""
        if isinstance(value, str):
            return self.pattern.sub(ERASED, value) if self.pattern else value
        if isinstance(value, Mapping):
            return {self.scrub(name): self.scrub(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.scrub(one) for one in value]
        return value


def is_telling(word: str) -> bool:
    """Whether a word points to few people: an address, a number, or a name of several words."""
    return "@" in word or " " in word or sum(sign.isdigit() for sign in word) >= LEAST_DIGITS


def blank(value: Any, kept: Collection[str] = ()) -> Any:
    """The value with each text erased, deeply, but for those in `kept` and for times; all else stays."""
    if isinstance(value, str):
        return value if not value or value in kept or _MOMENT.fullmatch(value) else ERASED
    if isinstance(value, Mapping):
        return {name: blank(one, kept) for name, one in value.items()}
    if isinstance(value, list):
        return [blank(one, kept) for one in value]
    return value


def own_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an event about the person: what changed is gone, that something did is left."""
    emptied: dict[str, Any] = {"before": {}, "after": {}, "snapshot": {}, "data": {}, "cut": []}
    told = {"quiet": True} if facts.get("quiet") else {}  # nothing of the person's, and why no rule ran
    kind = {"change": facts.get("change", ""), "source": facts.get("source", "")}
    return {**emptied, **kind, **told, "erased": [EVERYTHING]}


def linked_facts(
    facts: Mapping[str, Any], *, personal: Collection[str], texts: Collection[str], needles: Needles
) -> dict[str, Any]:
    """The facts of an event about a record of the person's, such as a ticket.

    Its `texts` are erased, and what was read of the person by the paths in `personal` is empty; states, numbers and
    times stay.
    """

    def without(values: Any) -> dict[str, Any]:
        return {path: _linked(path, value, personal, texts, needles) for path, value in (values or {}).items()}

    parts = {name: without(facts.get(name)) for name in _PARTS}
    rest = {name: needles.scrub(value) for name, value in facts.items() if name not in _PARTS}
    return marked(facts, {**rest, **parts, "data": blank(facts.get("data") or {})})


def marked(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new facts, which say in "erased" what of them was another value in the old ones, or in older ones.

    Paths; "event.<name>" of the event's own data, and "before:<path>" where only the value before the change is gone.
    """
    paths = set(old.get("erased") or ())
    for part, prefix in (("snapshot", ""), ("after", ""), ("before", BEFORE), ("data", "event.")):
        was = old.get(part) or {}
        paths |= {prefix + path for path, value in (new.get(part) or {}).items() if value != was.get(path)}
    return {**new, "erased": sorted(paths)} if paths else dict(new)


_PARTS = ("before", "after", "snapshot")


def _linked(path: str, value: Any, personal: Collection[str], texts: Collection[str], needles: Needles) -> Any:
    if path in personal:
        return None
    return blank(value) if path in texts else needles.scrub(value)


def _ways(word: str) -> set[str]:
    """How a word looks in plain text, in JSON, in an address and in HTML."""
    exact = json.dumps(word, ensure_ascii=False)[1:-1]
    plain = {json.dumps(one)[1:-1] for one in (word, word.upper(), word.lower(), word.title())}
    return {word, *plain, exact, quote(word), quote(word, safe="@"), quote_plus(word), html.escape(word)}
