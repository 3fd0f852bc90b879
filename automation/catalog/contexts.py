"""What an action is given to work with: one protocol for each of the moments at which it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from automation.catalog.automatable import Automatable


class ConnectionData(Protocol):
    """A connection of the tenant as plain values; the secret is never logged or stored."""

    name: str
    kind: str
    endpoint: str
    secret: str
    settings: Mapping[str, Any]


class Context(Protocol):
    """What every moment knows: the tenant, the record and the facts of the event."""

    @property
    def tenant_id(self) -> int:
        """The tenant's id."""

    @property
    def record_key(self) -> str:
        """The record as "helpdesk.ticket:12"."""

    @property
    def now(self) -> datetime:
        """The moment of this try, aware."""

    @property
    def zone(self) -> ZoneInfo:
        """The tenant's time zone."""


class LocalContext(Context, Protocol):
    """For a local effect: the record's present values, and small doors that write."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The record's present values in their JSON forms, by path."""

    @property
    def actor_name(self) -> str:
        """Who the change is attributed to."""

    @property
    def model(self) -> str:
        """The record's model, "helpdesk.ticket"."""

    @property
    def record_id(self) -> int:
        """The record's id."""

    def current(self, path: str) -> Any:
        """The present raw value of one path."""

    def change(self, **fields: Any) -> dict[str, Any]:
        """Write the named columns of the record; returns what really changed, {field: [before, after]}."""

    def add_note(self, text: str) -> int:
        """Write a note where the model keeps its notes; returns its id."""

    def create(self, model: str, **fields: Any) -> int:
        """Write a new record of an automatable model of the tenant; returns its id."""

    def group_id(self, name: str) -> int | None:
        """The id of the tenant's group of that name."""

    def pick_member(self, group: str | None = None) -> int | None:
        """The next member by turns (of a group): fewest open, then longest since last assigned; None when none can."""


class PrepareContext(Context, Protocol):
    """For the look into the database just before an outside effect."""

    def current(self, path: str) -> Any:
        """The present raw value of one path, not that of the event."""

    def member_address(self, member_id: int) -> str | None:
        """A member's e-mail address."""

    def exists(self) -> bool:
        """Whether the record is still there."""

    def count_sent(self, recipient: str, *, minutes: int) -> int:
        """How many messages this rule has sent, or is sending, to the recipient in the last so many minutes."""

    def is_own_address(self, address: str) -> bool:
        """Whether the tenant itself receives mail at the address."""

    def answers_machine(self, address: str) -> str:
        """By which header the mail that the run goes back to was sent by a machine at that address; "" if it wasn't."""

    def keep(self, **values: Any) -> None:
        """Keeps JSON values with the step's input and hands them to `perform` as `context.kept`."""


class OutsideContext(Context, Protocol):
    """For an outside effect, in a thread without a database."""

    @property
    def key(self) -> str:
        """The idempotency key, the same for every try."""

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""

    @property
    def timeout(self) -> float:
        """Seconds that this try may take."""

    @property
    def outbound(self) -> Any:
        """The one guarded door for HTTP."""

    @property
    def event(self) -> Mapping[str, Any]:
        """The facts of the event that the run was started by, and its id."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What `prepare` kept for this try."""

    @property
    def cause_token(self) -> str:
        """The signed cause that outgoing messages carry, so that a chain that comes back is known."""

    def connection(self, name: str) -> ConnectionData:
        """The connection of that name; it was there when the step was prepared."""


class PreviewContext(Context, Protocol):
    """For showing what would be done."""

    def current(self, path: str) -> Any:
        """The present raw value of one path."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """For checking parameters on save: the trigger's model, what may be done with it, and the tenant's own names.

    `models` are all automatable models by name. Connections, members and groups marked in the parameters, and
    templates, are checked by the compiler; an action checks only what it alone knows.
    """

    model: str
    automatable: "Automatable | None"
    references: Any = None
    models: Mapping[str, "Automatable"] = field(default_factory=dict)
    on: frozenset[str] = frozenset()
