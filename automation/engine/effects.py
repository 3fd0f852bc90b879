"""An outside effect on its way: what a thread gets to do it, and what it brings back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from automation.catalog.action import Action, Effect, Outcome
from automation.core.errors import TemplateError
from automation.models import Connection
from automation.outbound.answers import OutboundError
from automation.store.claims import Claimed


@dataclass(frozen=True, slots=True)
class ConnectionValues:
    """A connection as plain values; the secret is kept out of every repr."""

    name: str
    kind: str
    endpoint: str
    secret: str | None = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    id: int = 0
    allowed_hosts: tuple[str, ...] = ()  # none: the host of the endpoint alone
    breaker: str = "closed"  # as it stood when the step was let through
    has_places: bool = False  # a limit of calls at a time: others may wait for this one's place


def reachable(connection: Connection, secret: str) -> ConnectionValues:
    """A connection as a thread gets it, with its secret in clear."""
    return ConnectionValues(
        connection.name,
        connection.kind,
        connection.endpoint,
        secret,
        connection.settings,
        id=connection.pk,
        allowed_hosts=connection.hosts(),
        breaker=connection.breaker,
        has_places=connection.concurrency is not None,
    )


@dataclass(slots=True)
class OutsideDoor:
    """The context of an outside action, for a thread without a database."""

    tenant_id: int
    record_key: str
    now: datetime
    zone: ZoneInfo
    key: str
    attempt: int
    timeout: float
    event: Mapping[str, Any]
    connections: Mapping[str, ConnectionValues]
    kept: Mapping[str, Any] = field(default_factory=dict)
    outbound: Any = None
    cause_token: str = ""
    called: list[str] = field(default_factory=list)  # connections that were called, each time again

    def call(self, name: str) -> ConnectionValues:
        """The connection of that name for a call that is made now: how it ends says how the system does."""
        self.called.append(name)
        return self.connections[name]

    def connection(self, name: str) -> ConnectionValues:
        """The connection of that name, as it was when the step was prepared."""
        return self.connections[name]


@dataclass(slots=True)
class EffectCall:
    """One attempt of an outside step, or the delivery of a notice, under its timer's lease."""

    claimed: Claimed
    run_id: int | None
    step_id: int | None
    timeout: float
    act: Callable[[Any], Outcome]
    door: OutsideDoor
    effect: str = ""


@dataclass(slots=True)
class Finished:
    """An effect that came back, or was given up at its deadline."""

    call: EffectCall
    outcome: Outcome


class EffectDoor(Protocol):
    """Where effects go out: threads in a pump, a recorder in the in-process runner."""

    def free(self) -> int:
        """How many more effects it can take now."""

    def submit(self, call: EffectCall) -> None:
        """Starts an effect; never blocks."""

    def finished(self) -> list[Finished]:
        """What has come back since the last time."""


def perform(action: Action, params: Any) -> Callable[[Any], Outcome]:
    """The function that a thread calls: every exception becomes an outcome."""

    def act(door: Any) -> Outcome:
        try:
            return action.perform(params, door)
        except OutboundError as error:
            return error.outcome(Outcome)
        except TemplateError as error:
            return Outcome.rejected(str(error), reason="template_error")

    return act


def guarded(call: EffectCall) -> Outcome:
    """Runs an effect so that nothing escapes: a fault of the action's own is a failed attempt that may be retried.

    Nobody knows whether it came before or after the sending, so what must not be sent twice is uncertain.
    """
    try:
        return call.act(call.door)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Outcome.uncertain(text) if call.effect == Effect.AT_MOST_ONCE else Outcome.retry(text)
