"""What a trace shows, as plain values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from automation.core.conditions import LeafReport
from automation.engine.waiting import TimerRow
from automation.models import Attempt, DeadLetter, StepExecution

NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that the event changed, in the JSON forms of facts; of a created record only `after`."""

    field: str
    label: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class EventReport:
    """The event that started the run: who made it, what changed, and the snapshot that the rule was judged on."""

    id: int
    kind: str
    change: str
    name: str
    actor: str
    source: str
    batch: str
    depth: int
    created_at: datetime
    matched_at: datetime | None
    changes: list[FieldChange]
    snapshot: dict[str, Any]
    data: dict[str, Any]
    cut: list[str]


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """A condition as it was judged: "true", "false" or "unknown" with a reason code, and each of its leaves.

    `labels` names the fields; "always" conditions have no leaves.
    """

    result: str
    reason: str
    leaves: list[LeafReport]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class ArmReport:
    """A way out of a branch. `condition` is None where it was judged on values that weren't kept: after a delay."""

    id: str
    taken: bool
    condition: ConditionReport | None


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step of the pinned version with what became of it; `state` is "not_reached" and `row` None where nothing did.

    `attempts` in their order; `counted` of them count against `max_attempts` since a person last retried the step.
    """

    path: str
    id: str
    level: int
    kind: str
    action: str
    action_label: str
    off: bool
    note: str
    effect: str
    state: str
    reason: str
    row: StepExecution | None
    attempts: list[Attempt]
    counted: int
    max_attempts: int | None
    timer: TimerRow | None
    arms: list[ArmReport]
    dead_letter: DeadLetter | None
