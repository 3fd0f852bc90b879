"""What the planner can answer, as values, and the settled steps that it is told."""

from dataclasses import dataclass
from typing import Literal

from automation.core.conditions import Verdict
from automation.core.spec import Node

OTHERWISE = "otherwise"
"""What `Settled.taken` says of a branch none of whose arms was true."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A step that has come to its end: its path, how, and for a branch the id of the arm taken (or "otherwise")."""

    path: str
    state: Literal["succeeded", "failed", "skipped"]
    taken: str | None = None


@dataclass(frozen=True, slots=True)
class Perform:
    """Perform the node's action."""

    node: Node


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for the node's span, a zero one too, then settle it."""

    node: Node


@dataclass(frozen=True, slots=True)
class Choose:
    """Go on at `next_index` (None: the run ends) through the arm `arm_id` (None: otherwise).

    `unknown` lists (arm id, verdict) of arms that couldn't be judged; such an arm isn't taken.
    """

    node: Node
    arm_id: str | None
    next_index: int | None
    unknown: tuple[tuple[str, Verdict], ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """The node is switched off: settle it as skipped."""

    node: Node


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run here; with "later_rules" also the later rules of the event."""

    node: Node
    ends: Literal["run", "later_rules"]


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do: the run has succeeded."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The node has failed for good, and the run with it."""

    node: Node


Decision = Perform | Sleep | Choose | Skip | Stop | Finish | Fail
