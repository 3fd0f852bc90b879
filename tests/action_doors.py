"""What actions are handed in tests: the engine's own doors on real records, and a stand-in for the look before."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from automation.catalog import registry
from automation.catalog.action import Action, CheckContext, Outcome
from automation.catalog.params import load
from automation.core.causes import ROOT
from automation.engine.effects import ConnectionValues, OutsideDoor, perform
from automation.engine.local import LocalDoor, take
from automation.outbound import Outbound, Sockets
from tenants.context import acting_for
from tenants.models import Tenant

NOW = datetime(2026, 3, 27, 11, 30, tzinfo=UTC)
KEY = "0123456789abcdef" * 4


def action(name: str) -> Action:
    """A registered action by its kind."""
    return registry.action(name, 1)


def do(name: str, record: Any, tenant: Tenant, *, now: datetime = NOW, **params: Any) -> Outcome:
    """Perform a local action on a record as the engine does: under its lock, written at the end."""
    entry = registry.model(record._meta.label_lower)
    kind = action(name)
    with acting_for(tenant.pk):
        door = LocalDoor(
            record=take(entry, tenant.pk, [record.pk])[0],
            tenant_id=tenant.pk,
            record_key=f"{entry.name}:{record.pk}",
            now=now,
            zone=tenant.zone,
            actor_name="Rule",
            cause=ROOT,
        )
        outcome = kind.perform(load(kind.Params, params), door)
        if outcome.state == "done":
            door.flush()
        record.refresh_from_db()
    return outcome


def problems(name: str, on: str, /, **params: Any) -> list[str]:
    """The pointers of what is wrong with parameters when a rule on that model is saved."""
    kind = action(name)
    context = CheckContext(model=on, automatable=registry.model(on), models=registry.models)
    return [pointer for pointer, _message in kind.check(load(kind.Params, params), context)]


@dataclass
class Prepared:
    """Present values of a record without a database."""

    values: dict[str, Any] = field(default_factory=dict)
    members: dict[int, str] = field(default_factory=dict)
    sent: int = 0
    own: tuple[str, ...] = ()
    machines: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    tenant_id: int = 1
    record_key: str = "helpdesk.ticket:12"
    now: datetime = NOW
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))

    def current(self, path: str) -> Any:
        return self.values.get(path)

    def exists(self) -> bool:
        return bool(self.values)

    def member_address(self, member_id: int) -> str | None:
        return self.members.get(member_id)

    def count_sent(self, recipient: str, *, minutes: int) -> int:
        return self.sent

    def is_own_address(self, address: str) -> bool:
        return address in self.own

    def answers_machine(self, address: str) -> str:
        return self.machines.get(address, "")

    def keep(self, **values: Any) -> None:
        self.kept |= values


def prepare(name: str, prepared: Prepared, **params: Any) -> Outcome | None:
    """Ask an outside action for its look before."""
    kind = action(name)
    return kind.prepare(load(kind.Params, params), prepared)


def send(
    name: str,
    *,
    endpoint: str = "",
    secret: str | None = "",
    settings: dict[str, Any] | None = None,
    kept: dict[str, Any] | None = None,
    event: dict[str, Any] | None = None,
    timeout: float = 5.0,
    **params: Any,
) -> Outcome:
    """Perform an outside action through the real door, with one connection known as "there"."""
    kind = action(name)
    there = ConnectionValues("there", name, endpoint, secret, settings or {})
    door = OutsideDoor(
        tenant_id=1,
        record_key="helpdesk.ticket:12",
        now=NOW,
        zone=ZoneInfo("UTC"),
        key=KEY,
        attempt=1,
        timeout=timeout,
        event=event or {},
        connections={"there": there},
        kept=kept or {},
    )
    door.outbound = Outbound(door.connection, allow_loopback=True, key=KEY, timeout=timeout, sockets=Sockets())
    return perform(kind, load(kind.Params, params))(door)
