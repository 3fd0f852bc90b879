"""A rule compiled to frozen values: what conditions and the planner work on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from automation.core.calendars import Span

GroupMode = Literal["all", "any", "none"]
NodeKind = Literal["action", "branch", "delay", "stop"]
Again = Literal["both", "keep", "restart"]
Imports = Literal["run", "skip", "once"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One comparison: a field of the facts, an operator, and a value already converted, or another field (`value_of`).

    `type` is the field's type; for a field of type `any` it is the type that the value suggests.
    """

    id: str
    field: str
    op: str
    value: object = None
    type: str = "text"
    value_of: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions joined: all of them, any of them, or none of them. An empty one never matches."""

    id: str
    mode: GroupMode
    items: tuple["Leaf | Group", ...]


Condition = Leaf | Group


@dataclass(frozen=True, slots=True)
class Retry:
    """How a failed step is tried again; delays in seconds."""

    max_attempts: int = 10
    base_delay: float = 1.0
    factor: float = 3.0
    max_delay: float = 3600.0
    jitter: bool = True


@dataclass(frozen=True, slots=True)
class Arm:
    """One way out of a branch, taken when its condition is true; `first` is its first node's index, None when empty."""

    id: str
    condition: Condition | None
    first: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """A step in the flat list. `next` is the index of what follows, None at the end of the run.

    The last node of an arm has the node after the branch as its `next`; an empty arm, and a branch whose arms all fail
    with `otherwise` None, lead to the branch's own `next`. `params` is the JSON form, `arguments` the action's
    validated parameters, templates not yet filled. `timeout` is in seconds.
    """

    index: int
    id: str
    path: str
    kind: NodeKind
    next: int | None = None
    action: str = ""
    local: bool = False
    params: Mapping[str, object] = field(default_factory=dict)
    arguments: object = field(default=None, compare=False)
    retry: Retry | None = None
    timeout: float | None = None
    effect: str = ""
    if_it_fails: Literal["stop", "continue"] = "stop"
    off: bool = False
    arms: tuple[Arm, ...] = ()
    otherwise: int | None = None
    span: Span | None = None
    ends: Literal["run", "later_rules"] = "run"


@dataclass(frozen=True, slots=True)
class RunLimit:
    """At most so many runs of the rule for one record in a span."""

    runs: int
    per: Span


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """What a rule listens to. An empty `fields` means any watched field; `name` is a custom event's.

    `on` are the kinds of change, of a trigger with outcomes those that count (none: all). An empty `model` means that
    its events have no record.
    """

    kind: str
    model: str
    on: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    name: str = ""


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """A whole rule: its trigger, when it applies, and its nodes; `reads` are all field paths it looks at.

    `imports`: it runs for each imported record, skips them, or runs once for each batch.
    """

    trigger: TriggerSpec
    condition: Condition | None
    again: Again
    nodes: tuple[Node, ...]
    first: int | None
    reads: frozenset[str]
    imports: Imports = "run"
    limit: RunLimit | None = None
    expires: Span | None = None  # the longest life of a run; None is the most there is
