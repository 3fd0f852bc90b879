"""What the stages hand to each other: a run in hand, a step in hand, and what becomes of its timer."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from automation.core.calendars import add
from automation.core.spec import Node, RuleSpec
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.values import names
from automation.store.events import EventRow
from automation.store.runs import StepRow
from automation.store.waves import LONGEST_LIFE


class FollowUp(NamedTuple):
    """What the run's timer becomes: gone (`kind` None), or a wake-up of that kind for a step; `due_at` None is now."""

    kind: str | None = None
    due_at: datetime | None = None
    step_id: int | None = None


GONE = FollowUp()


def longest_life(spec: RuleSpec | None, *, now: datetime, zone: ZoneInfo) -> timedelta:
    """How long a run may take at most: what its rule says, in the tenant's calendar."""
    if spec is None or spec.expires is None:
        return LONGEST_LIFE
    return add(now, spec.expires, zone) - now


@dataclass(slots=True)
class RunInHand:
    """A run under its lock (or just inserted), with all that its steps are judged and filled by."""

    id: int
    tenant: TenantRules
    rule: Compiled
    event: EventRow
    was: str
    now: datetime
    forked: bool = False
    epoch: int = 0
    state: str = ""
    reason: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    fresh: dict[str, Any] | None = None  # the record as it is now, once the run has slept

    def __post_init__(self) -> None:
        self.state = self.state or self.was

    @property
    def spec(self) -> RuleSpec:
        """The compiled definition; a version that can't be compiled never gets this far."""
        if self.rule.spec is None:
            raise LookupError(f"version {self.rule.number} of rule {self.rule.rule_id} can't be compiled")
        return self.rule.spec

    def node(self, path: str) -> Node | None:
        """The node of that path in the pinned version."""
        return next((node for node in self.spec.nodes if node.path == path), None)

    def facts(self) -> dict[str, Any]:
        """What conditions and templates read: the event's facts, or with the record's present values after a sleep."""
        if self.fresh is None:
            return self.event.facts
        return {**self.event.facts, "snapshot": self.fresh}

    def names(self) -> dict[str, Any]:
        """What templates may name."""
        facts = self.facts()
        return names(
            model=self.event.model,
            snapshot=facts.get("snapshot") or {},
            record=self.event.record,
            data=facts.get("data") or {},
            rule=self.rule.name,
            tenant=self.tenant.name,
            steps=self.outputs,
        )


@dataclass(slots=True)
class StepInHand:
    """A step that is being executed: its node, its id, and its row where there is one already."""

    node: Node
    id: int
    row: StepRow | None = None
    attempts: int = 0
    input: Any = None
    key: str = ""

    @property
    def failures(self) -> int:
        """How many attempts count against the step's own number: those since a person last retried it."""
        return self.attempts - (self.row.retried_at_attempt if self.row else 0)
