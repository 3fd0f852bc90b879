"""What a trial found, as plain values for pages, programs and the terminal."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _

from automation.engine.reports import ConditionReport, FieldChange, StepReport
from automation.outbound.recording import Request

Result = Literal["would_run", "would_wait", "would_fail", "would_not_run", "suppressed"]


@dataclass(frozen=True, slots=True)
class ArmTried:
    """A way out of a branch, and how its condition was judged; None where only present values could have told."""

    id: str
    taken: bool
    condition: ConditionReport | None


@dataclass(frozen=True, slots=True)
class StepTried:
    """A step in the order of the definition; `state` "not_reached" where the run didn't get there.

    `input` are its parameters with every template filled, `requests` what would have been sent, in full, `until` when
    a wait ends.
    """

    path: str
    id: str
    level: int
    kind: str
    action: str
    label: str
    state: str
    reason: str
    error: str
    attempts: int
    input: Any
    output: Any
    until: str | None
    arms: list[ArmTried]
    requests: list[Request]


@dataclass(frozen=True, slots=True)
class Follow:
    """A change that the rule would make, and the live rules that would run for it."""

    record: str
    change: str
    fields: list[str]
    rules: list[str]


@dataclass(frozen=True, slots=True)
class TrialReport:
    """A trial: what it was tried on, what it came to, each step, and what would follow.

    `gate` says what stopped it: "trigger", "condition", a reason code, or "" for nothing. `history` is the run as
    `engine/histories.py` writes it; None where none would start.
    """

    rule: str
    origin: str
    at: datetime
    result: Result
    gate: str
    sentence: str
    condition: ConditionReport | None
    steps: list[StepTried]
    changes: list[FieldChange]
    follows: list[Follow]
    remarks: list[str]
    seconds: float
    history: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self), cls=DjangoJSONEncoder))
        return found


def step_tried(report: StepReport, requests: list[Request]) -> StepTried:
    """A step of a trace as the trial shows it."""
    row = report.row
    given = row.input if row else None
    return StepTried(
        path=report.path,
        id=report.id,
        level=report.level,
        kind=report.kind,
        action=report.action,
        label=report.action_label,
        state=report.state,
        reason=report.reason,
        error=row.error if row else "",
        attempts=row.attempts if row else 0,
        input=None if report.kind == "delay" else given,
        output=row.output if row else None,
        until=given.get("until") if report.kind == "delay" and given else None,
        arms=[ArmTried(arm.id, arm.taken, arm.condition) for arm in report.arms],
        requests=requests,
    )


def sentence(result: Result, gate: str, why: str) -> str:
    """What it came to, in a sentence."""
    if gate == "trigger":
        return why
    if gate == "condition":
        return _("The rule would not run: its condition is not true.")
    whole = {
        "would_run": _("The rule would run to its end."),
        "would_wait": _("The rule would run and then wait."),
        "would_fail": _("The rule would run and fail: %(why)s") % {"why": why or gate},
        "suppressed": _("The rule would match and not be started: %(why)s") % {"why": why or gate},
        "would_not_run": _("The rule would not run."),
    }
    return whole[result]
