"""A condition made ready to be asked in many scenes: the fields that it reads, and the ways each of them may stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from automation.core.conditions import leaves as leaves_of
from automation.core.known import Known, base_of
from automation.core.moments import Moment
from automation.core.scenes import Part, Scene, part_of
from automation.core.spec import Condition, Leaf
from automation.core.standing import Followers, Way, ways

UNKNOWN = Known(type="any", watched=False)


@dataclass(slots=True)
class Asked:
    """A field with the leaves that ask for it, or for what follows from it; remembers the ways by parts of scenes."""

    name: str
    leaves: tuple[Leaf, ...]
    keys: tuple[int, ...]  # of the leaves: their ids in memory
    known: Known
    moment: Moment
    followers: Followers
    _ways: dict[Part, Sequence[Way] | None] = field(default_factory=dict)

    def ways(self, scene: Scene) -> Sequence[Way] | None:
        """The ways in a scene; None where nothing is known."""
        part = part_of(self.name, self.known, scene)
        if part not in self._ways:
            self._ways[part] = ways(self.name, self.leaves, self.known, part, self.moment, self.followers)
        return self._ways[part]


def asked(condition: Condition | None, fields: Mapping[str, Known], moment: Moment) -> tuple[Asked, ...]:
    """The fields that a condition reads, each once, with those that follow from it."""
    by_field: dict[str, list[Leaf]] = {}
    for leaf in leaves_of(condition):
        by_field.setdefault(base_of(leaf.field, fields), []).append(leaf)
    return tuple(
        Asked(
            name, tuple(some), tuple(map(id, some)), fields.get(name, UNKNOWN), moment, _followers(name, some, fields)
        )
        for name, some in by_field.items()
    )


def _followers(name: str, leaves: Sequence[Leaf], fields: Mapping[str, Known]) -> Followers:
    """The fields among those of the leaves that follow from the one of that name."""
    names = sorted({leaf.field for leaf in leaves} - {name})
    known = ((one, fields[one].follows) for one in names)
    return tuple((one, follows) for one, follows in known if follows is not None)
