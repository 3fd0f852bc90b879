"""The ways in which one field may stand in an event, by examples: every outcome that its comparisons can have."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from automation.core.examples import Example, examples, only_whole
from automation.core.facts import EVENT_PREFIX
from automation.core.judging import judge_of
from automation.core.known import Follows, Known
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.scenes import Part
from automation.core.spec import Leaf

MOST = 4000  # ways of one field; a field with more is not decided
Result = bool | None
Followers = tuple[tuple[str, Follows], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way: what each of the field's leaves says, whether the event carries the field, and whether it is one of
    very few values that an open field could have.
    """

    results: tuple[Result, ...]
    carried: bool
    rare: bool


@lru_cache(maxsize=20_000)  # rules ask the same of a field again and again, and most events leave most fields alone
def ways(
    field: str, leaves: tuple[Leaf, ...], known: Known, part: Part, moment: Moment, followers: Followers
) -> tuple[Way, ...] | None:
    """All the ways, each outcome once; None where too many or comparisons of a sort that examples can't decide.

    Leaves on `followers`, (name, how it follows from the field), may be among the leaves.
    """
    values = examples([leaf for leaf in leaves if leaf.field == field], known.type, known.choices, moment)
    if values is None or any(leaf.value_of is not None for leaf in leaves):
        return None
    values = only_whole(values) if known.whole else values
    values = [one for one in values if known.nullable or one.raw is not None]
    given = [Example(list(raw) if isinstance(raw, tuple) else raw) for raw in part.after or part.moved or ()]
    now = given if part.after is not None else [one for one in [*values, *given] if _fits(one.raw, part)]
    judges = [judge_of(leaf) for leaf in leaves]
    befores = _befores(values, leaves, known)
    if len(now) * len(befores) > MOST:
        return None
    found: dict[tuple[tuple[Result, ...], bool], bool] = {}
    moved = None if part.moved is None else [one.raw for one in given]
    for one in now:
        for before, carried in _moves(one.raw, befores, part):
            if carried and moved is not None and one.raw not in moved:
                continue
            facts = _facts(field, before, one.raw, carried=carried, change=part.change)
            facts["snapshot"] |= {name: follows.of(one.raw) for name, follows in followers}
            results = tuple(judge(facts, moment) for judge in judges)
            found[results, carried] = found.get((results, carried), True) and one.rare
    return tuple(Way(results, carried, rare) for (results, carried), rare in found.items())


_ANY = object()


def _befores(values: Sequence[Example], leaves: Iterable[Leaf], known: Known) -> Sequence[Any]:
    """The values that a field may have had: any one where no leaf asks, and of a set only whether it was the same."""
    if not any(OPERATORS[leaf.op].reads == "change" for leaf in leaves):
        return [_ANY]
    return [one.raw for one in (values[:3] if known.type in ("tags", "references") else values)]


def _fits(raw: Any, part: Part) -> bool:
    items = frozenset(raw if isinstance(raw, list) else ())
    return part.holds <= items and not part.lacks & items


def _moves(after: Any, befores: Iterable[Any], part: Part) -> Iterator[tuple[Any, bool]]:
    """(value before, whether the event carries the field) of the ways to come to a value."""
    if part.change == "created":
        yield None, part.may and after not in (None, "", [])
        return
    if part.change == "deleted" or not part.may:
        yield after, False
        return
    if not part.must:
        yield after, False
    for before in befores:
        if before is _ANY or before != after:
            yield before, True


def _facts(field: str, before: Any, after: Any, *, carried: bool, change: str) -> dict[str, Any]:
    of_event = field.startswith(EVENT_PREFIX)
    return {
        "change": change,
        "before": {field: before} if carried and change != "created" else {},
        "after": {field: after} if carried else {},
        "snapshot": {} if of_event else {field: after},
        "data": {field.removeprefix(EVENT_PREFIX): after} if of_event else {},
    }
