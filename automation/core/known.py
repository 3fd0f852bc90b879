"""What is known of a field before any event comes, and of fields that follow from another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Follows:
    """The field of the same record that another one follows from, and what that one is for each of its values."""

    field: str
    values: tuple[tuple[str, str], ...]

    def of(self, raw: Any) -> str | None:
        """What follows from a raw value; None where nothing is said of it."""
        return dict(self.values).get(raw)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a field: its type, its choices, whether it can be empty, whether an event can carry it.

    `whole` says that a number is a whole one, `follows` from which field it follows: none carries it then.
    """

    type: str = "text"
    choices: frozenset[str] = frozenset()
    nullable: bool = True
    watched: bool = True
    whole: bool = False
    follows: Follows | None = None


def base_of(name: str, fields: Mapping[str, Known]) -> str:
    """The field that decides what a field is: the one that it follows from, else itself."""
    known = fields.get(name)
    return known.follows.field if known is not None and known.follows is not None else name


__all__ = ["Follows", "Known", "base_of"]
