"""The ways in which one field may stand in an event, by examples: every outcome that its comparisons can have."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from automation.core.examples import Example, examples
from automation.core.facts import EVENT_PREFIX
from automation.core.judging import Judge, judge_of
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.spec import Leaf

MOST = 4000  # ways of one field; a field with more is not decided
Result = bool | None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a field: its type, its choices, whether it can be empty, and whether an event can carry it."""

    type: str = "text"
    choices: frozenset[str] = frozenset()
    nullable: bool = True
    watched: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """An event that may come: what kind of change it is, and what is sure about its fields.

    `may_change` None: any watched field. `after` are the values that a field can only have in it (raw, by field);
    `holds` and `lacks` what its set of tags has or hasn't. One of the fields of each set in `must_change` has changed.
    """

    change: str = "updated"
    may_change: frozenset[str] | None = None
    after: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    holds: tuple[tuple[str, frozenset[Any]], ...] = ()
    lacks: tuple[tuple[str, frozenset[Any]], ...] = ()
    must_change: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """One way: what each of the field's leaves says, whether the event carries the field, and whether it is one of
    very few values that an open field could have.
    """

    results: tuple[Result, ...]
    carried: bool
    rare: bool


def ways(field: str, leaves: Sequence[Leaf], known: Known, scene: Scene, moment: Moment) -> list[Way] | None:
    """All the ways, each outcome once; None where too many or comparisons of a sort that examples can't decide."""
    values = examples(leaves, known.type, known.choices, moment)
    if values is None:
        return None
    values = [one for one in values if known.nullable or one.raw is not None]
    now = _now(values, field, scene)
    judges = [judge_of(leaf) for leaf in leaves]
    befores = _befores(values, leaves, known)
    if len(now) * len(befores) > MOST:
        return None
    found: dict[tuple[tuple[Result, ...], bool], bool] = {}
    for one in now:
        for before, carried in _moves(one.raw, befores, field, known, scene):
            key = (_results(judges, field, before, one.raw, carried, scene.change, moment), carried)
            found[key] = found.get(key, True) and one.rare
    return [Way(results, carried, rare) for (results, carried), rare in found.items()]


_ANY = object()


def _befores(values: Sequence[Example], leaves: Sequence[Leaf], known: Known) -> Sequence[Any]:
    """The values that a field may have had: any one where no leaf asks, and of a set only whether it was the same."""
    if not any(OPERATORS[leaf.op].reads == "change" for leaf in leaves):
        return [_ANY]
    return [one.raw for one in values[:3] if known.type in ("tags", "references")] or [one.raw for one in values]


def _now(values: Sequence[Example], field: str, scene: Scene) -> list[Example]:
    allowed = dict(scene.after).get(field)
    if allowed is not None:
        return [Example(raw) for raw in allowed]
    return [one for one in values if _fits(one.raw, field, scene)]


def _fits(raw: Any, field: str, scene: Scene) -> bool:
    items = frozenset(raw if isinstance(raw, list) else ())
    holds, lacks = (dict(some).get(field, frozenset()) for some in (scene.holds, scene.lacks))
    return holds <= items and not lacks & items


def _moves(after: Any, befores: Iterable[Any], field: str, known: Known, scene: Scene) -> Iterator[tuple[Any, bool]]:
    """(value before, whether the event carries the field) of the ways to come to a value."""
    may = known.watched and (scene.may_change is None or field in scene.may_change)
    must = {field} in scene.must_change
    if scene.change == "created":
        yield None, after not in (None, "", [])
        return
    if scene.change == "deleted" or not may or field.startswith(EVENT_PREFIX):
        yield after, False
        return
    if not must:
        yield after, False
    for before in befores:
        if before is _ANY or before != after:
            yield before, True


def _results(
    judges: Iterable[Judge], field: str, before: Any, after: Any, carried: bool, change: str, moment: Moment
) -> tuple[Result, ...]:
    facts = {
        "change": change,
        "before": {field: before} if carried and change != "created" else {},
        "after": {field: after} if carried else {},
        "snapshot": {} if field.startswith(EVENT_PREFIX) else {field: after},
        "data": {field.removeprefix(EVENT_PREFIX): after} if field.startswith(EVENT_PREFIX) else {},
    }
    return tuple(judge(facts, moment) for judge in judges)
