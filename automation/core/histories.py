"""A recorded run as plain values: what it was started by, what it did, and how that is read from JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from automation.core.erasing import ERASED
from automation.core.keys import idempotency_key

FORMAT = 1


class NoHistory(ValueError):
    """What was read isn't a recorded run; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step as it was when the history was written. `taken`: the arm of a branch; `given` is its input."""

    path: str
    kind: str
    action: str
    state: str
    reason: str = ""
    epoch: int = 0
    key: str = ""
    given: Any = None
    output: Any = None

    @property
    def taken(self) -> str | None:
        """The arm that a branch took; None for "otherwise"."""
        found: str | None = (self.output or {}).get("taken")
        return found


@dataclass(frozen=True, slots=True)
class History:
    """A run: the definition that it followed, its event with the facts, how it stands, and its steps by path."""

    tenant_id: int
    tenant: str
    zone: ZoneInfo
    rule_id: int
    rule: str
    definition: Mapping[str, Any]
    event: Mapping[str, Any]
    at: datetime
    state: str
    reason: str
    is_replay: bool
    epoch: int
    steps: Mapping[str, RecordedStep] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the event."""
        found: dict[str, Any] = self.event["facts"]
        return found

    @property
    def record_key(self) -> str:
        """The record as keys name it; the event itself where it has none."""
        event = self.event
        return f"{event['model']}:{event['record']}" if event["record"] is not None else f"event:{event['id']}"

    def key(self, step: RecordedStep) -> str:
        """The key under which the step's effect goes out."""
        return idempotency_key(
            tenant_id=self.tenant_id,
            record_key=self.record_key,
            rule_id=self.rule_id,
            event_id=self.event["id"],
            path=step.path,
            epoch=self.epoch + step.epoch,
        )


def moment_in(given: Any, name: str) -> datetime | None:
    """A moment that a step's input holds; None where it doesn't, or where it was erased."""
    try:
        return datetime.fromisoformat(given[name])
    except (KeyError, TypeError, ValueError):
        return None


def values_in(given: Any) -> dict[str, Any] | None:
    """The present values that a branch was judged on; None where there are none, or where some were erased."""
    found = given.get("read") if isinstance(given, dict) else None
    return None if not isinstance(found, dict) or ERASED in json.dumps(found, default=str) else found


def read_history(data: Any) -> History:
    """A history from its JSON object, as `engine/histories.py` writes it; NoHistory for anything else."""
    if not isinstance(data, dict) or data.get("history") != FORMAT:
        raise NoHistory(f'a recorded run is a JSON object with "history": {FORMAT}')
    try:
        return History(
            tenant_id=data["tenant"]["id"],
            tenant=data["tenant"]["name"],
            zone=ZoneInfo(data["tenant"]["zone"]),
            rule_id=data["rule"]["id"],
            rule=data["rule"]["name"],
            definition=data["definition"],
            event=data["event"],
            at=datetime.fromisoformat(data["event"]["at"]),
            state=data["run"]["state"],
            reason=data["run"]["reason"],
            is_replay=data["run"]["is_replay"],
            epoch=data["run"]["epoch"],
            steps={step["path"]: RecordedStep(**step) for step in data["steps"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NoHistory(f"a part of the recorded run is missing or wrong: {error}") from error
