"""One thing that people should look at in rules, as a plain value."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "loop",
    "two_writers",
    "never",
    "always",
    "nearly_always",
    "arm_never",
    "otherwise_never",
    "dead_reference",
    "silent",
]
Severity = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a rule: the id of a step, arm or condition, "" for the rule itself, and where it is written."""

    rule_id: int
    rule_name: str
    node: str
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, where, and in a sentence. `certain`: a loop closes whenever its rules change something."""

    kind: Kind
    severity: Severity
    places: tuple[Place, ...]
    sentence: str
    certain: bool = False

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        places = [
            {"rule": one.rule_id, "name": one.rule_name, "node": one.node, "pointer": one.pointer}
            for one in self.places
        ]
        return {
            "kind": self.kind,
            "severity": self.severity,
            "certain": self.certain,
            "sentence": self.sentence,
            "places": places,
        }
