"""Events that may come, as far as something is sure about them, and what one says of a single field."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from automation.core.facts import EVENT_PREFIX
from automation.core.known import Known


@dataclass(frozen=True, slots=True)
class Scene:
    """An event that may come: what kind of change it is, and what is sure about its fields.

    `may_change` None: any watched field. `after` are the values that a field can only have in it, by field (raw, but
    tags as tuples), `moved` those that it has where the event carries it; `holds` and `lacks` what its set of tags has
    or hasn't. One field of each set in `must_change` has changed.
    """

    change: str = "updated"
    may_change: frozenset[str] | None = None
    after: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    moved: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    holds: tuple[tuple[str, frozenset[Any]], ...] = ()
    lacks: tuple[tuple[str, frozenset[Any]], ...] = ()
    must_change: tuple[frozenset[str], ...] = ()


class Part(NamedTuple):
    """What a scene says of one field: whether the event may carry it, and must; the values, and what a set has."""

    change: str
    may: bool
    must: bool
    after: tuple[Any, ...] | None
    moved: tuple[Any, ...] | None
    holds: frozenset[Any]
    lacks: frozenset[Any]


@lru_cache(maxsize=5000)
def _pairs(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return dict(pairs)


def part_of(field: str, known: Known, scene: Scene) -> Part:
    """What a scene says of a field."""
    may = known.watched and not field.startswith(EVENT_PREFIX)
    return Part(
        scene.change,
        may and (scene.may_change is None or field in scene.may_change),
        any(len(names) == 1 and field in names for names in scene.must_change),
        _pairs(scene.after).get(field),
        _pairs(scene.moved).get(field),
        _pairs(scene.holds).get(field, _NOTHING),
        _pairs(scene.lacks).get(field, _NOTHING),
    )


_NOTHING: frozenset[Any] = frozenset()
