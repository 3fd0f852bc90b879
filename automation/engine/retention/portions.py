"""What retention says about each step of its way."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Portion:
    """What one committed batch did: `looked` at so many rows of a kind, and removed so many of each."""

    what: str
    looked: int
    removed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, what: str, looked: int, **removed: int) -> "Portion":
        """A batch that names only what it did remove."""
        return cls(what, looked, {name: count for name, count in removed.items() if count})
