"""What an action may ask the database just before its outside effect, in the transaction of the intent."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from automation.catalog import registry
from automation.core.automatic_mail import base
from automation.engine import capture
from automation.engine.progress import RunInHand
from automation.store import events
from automation.store import runs as store
from tenants.models import Membership


class PrepareDoor:
    """Present values of the record, members' addresses, and how much was sent of late."""

    def __init__(self, run: RunInHand) -> None:
        self._run = run
        self._current: dict[str, Any] | None = None
        self.kept: dict[str, Any] = {}

    @property
    def tenant_id(self) -> int:
        """The tenant's id."""
        return self._run.event.tenant_id

    @property
    def record_key(self) -> str:
        """The record as "helpdesk.ticket:12"."""
        return self._run.event.record_key

    @property
    def now(self) -> datetime:
        """The moment of this try, aware."""
        return self._run.now

    @property
    def zone(self) -> ZoneInfo:
        """The tenant's time zone."""
        return self._run.tenant.zone

    @property
    def model(self) -> str:
        """The record's model, "helpdesk.ticket"; empty for an event without a record."""
        return self._run.event.model

    def current(self, path: str) -> Any:
        """The present raw value of one path, not that of the event; None when the record is gone."""
        return self._values().get(path)

    def exists(self) -> bool:
        """Whether the record is still there; an event without a record has none to lose."""
        return self._run.event.record is None or bool(self._values())

    def keep(self, **values: Any) -> None:
        """Keeps JSON values with the step's input and hands them to `perform` as `context.kept`."""
        self.kept |= values

    def _values(self) -> dict[str, Any]:
        if self._current is None:
            event = self._run.event
            found: dict[int, dict[str, Any]] = {}
            if event.model and event.record is not None:
                found = capture.read_records(registry.model(event.model), [event.record], lock=False)
            self._current = found.get(event.record or 0, {})
        return self._current

    def member_address(self, member_id: int) -> str | None:
        """A member's e-mail address; None for somebody who isn't in the tenant or isn't active."""
        members = Membership.objects.filter(pk=member_id, tenant_id=self.tenant_id, is_active=True)
        address: str | None = members.values_list("user__email", flat=True).first()
        return address or None

    def is_own_address(self, address: str) -> bool:
        """Whether the tenant itself receives mail at the address, with or without a +suffix."""
        return base(address) in self._run.tenant.own_addresses

    def answers_machine(self, address: str) -> str:
        """By which header the mail that the run goes back to was sent by a machine at that address; "" if it wasn't.

        Also where a rule's own change came between; a mailbox that answers machines is excepted.
        """
        mail = self._mail()
        marked = str(mail.get("automatic") or "")
        if not marked or base(str(mail.get("from", ""))) != base(address):
            return ""
        return "" if self._run.tenant.own_addresses.get(base(str(mail.get("to", "")))) else marked

    def _mail(self) -> dict[str, Any]:
        """What is known of the mail that the run's event came of, or the event that its chain began with."""
        event = self._run.event
        found: dict[str, Any] = event.facts.get("mail") or {}
        if not found and event.cause.root_event_id is not None:
            found = events.mail_of(event.cause.root_event_id)
        return found

    def count_sent(self, recipient: str, *, minutes: int) -> int:
        """How many messages this rule has sent, or is sending, to the recipient in the last so many minutes."""
        return store.sent_to(self.tenant_id, rule_id=self._run.rule.rule_id, recipient=recipient, minutes=minutes)
