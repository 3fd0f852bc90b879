"""Whether a condition can hold, or fail, in an event that may come: a search over the ways its fields may stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from automation.core.asking import Asked, asked
from automation.core.known import Known
from automation.core.moments import Moment
from automation.core.scenes import Scene
from automation.core.spec import Condition, Leaf
from automation.core.standing import Result, Way

EFFORT = 3000  # judgements of a search; a condition that needs more isn't decided
OPEN: Final = "open"
Seen = bool | None | Literal["open"]


@dataclass(frozen=True, slots=True)
class Question:
    """A condition in a scene, with what is known of the fields it reads; `ready` where it is asked often."""

    condition: Condition | None
    scene: Scene
    fields: Mapping[str, Known]
    moment: Moment
    ready: tuple[Asked, ...] | None = None


def possible(question: Question, *, wanted: bool = True, common: bool = False) -> bool:
    """Whether the condition may come out as `wanted`; true as well where that can't be decided.

    With `common`, only where no open field has exactly one of the values that the condition names.
    """
    if question.condition is None and not wanted:
        return False
    return _Search(question, wanted, common).found()


@dataclass(slots=True)
class _Field:
    """A field, or a leaf that nothing is known of, with the ways it may stand."""

    name: str
    leaves: Sequence[int]
    ways: Sequence[Way]


@dataclass(slots=True)
class _Search:
    question: Question
    wanted: bool
    common: bool
    spent: int = 0
    _fields: list[_Field] = field(default_factory=list)
    _seen: dict[int, Seen] = field(default_factory=dict)
    _carried: dict[str, bool] = field(default_factory=dict)

    def found(self) -> bool:
        self._fields = sorted(self._standing(), key=lambda one: len(one.ways))
        return self._try(0)

    def _standing(self) -> list[_Field]:
        question, found = self.question, list[_Field]()
        ready = question.ready
        for one in asked(question.condition, question.fields, question.moment) if ready is None else ready:
            some = one.ways(question.scene)
            if some is None:
                found += [_Field("", [key], _EITHER) for key in one.keys]
            else:
                kept = [way for way in some if not way.rare] if self.common else some
                found.append(_Field(one.name, one.keys, kept))
        return found

    def _try(self, place: int) -> bool:
        self.spent += 1
        if self.spent > EFFORT:
            return True
        verdict = _seen(self.question.condition, self._seen)
        if verdict is not OPEN and (verdict is not self.wanted or place == len(self._fields)):
            return verdict is self.wanted and self._changes()
        if place == len(self._fields):
            return False
        one = self._fields[place]
        for way in one.ways:
            self._seen |= zip(one.leaves, way.results, strict=True)
            self._carried[one.name] = way.carried
            if self._try(place + 1):
                return True
        for leaf in one.leaves:
            self._seen.pop(leaf, None)
        self._carried.pop(one.name, None)
        return False

    def _changes(self) -> bool:
        """Whether one field of each set can have changed: one that the condition doesn't read can if any may."""
        may = self.question.scene.may_change
        return all(
            any(self._carried.get(name, True) for name in names if may is None or name in may)
            for names in self.question.scene.must_change
        )


_EITHER = (Way((True,), carried=False, rare=False), Way((False,), carried=False, rare=False))


def _seen(condition: Condition | None, results: Mapping[int, Seen]) -> Seen:
    """A condition of which some leaves aren't judged yet."""
    if condition is None:
        return True
    if isinstance(condition, Leaf):
        return results.get(id(condition), OPEN)
    decides, answer = condition.mode != "all", condition.mode == "any"
    values = [_seen(item, results) for item in condition.items]
    if decides in values:
        return answer
    if OPEN in values:
        return OPEN
    return None if None in values or not values else not answer


__all__ = ["EFFORT", "Question", "Result", "possible"]
