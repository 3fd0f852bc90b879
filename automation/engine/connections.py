"""Keeps a tenant's connections: each change reaches the workers at their next claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from automation import conf
from automation.catalog import registry
from automation.catalog.params import ConnectionRef, marker_of
from automation.core.breaker import CLOSED, OFF
from automation.engine.health import hurry
from automation.engine.operate import Refused
from automation.engine.references import switch_off_broken
from automation.engine.turns import give_places
from automation.models import Connection, Pause, Rule
from automation.outbound.addresses import check_url, host_allowed
from automation.store import breakers, clock, pauses
from tenants import audit
from tenants.context import acting_for

SEEN = ("name", "kind", "endpoint", "settings", "allowed_hosts", "concurrency")
KEPT = (*SEEN, "secret_encrypted", "revision", "changed_at")  # what people keep; the breaker is the engine's


def kinds() -> list[str]:
    """The kinds of connections that the registered actions ask for, sorted."""
    found: set[str] = set()
    for action in registry.actions.values():
        for info in action.Params.model_fields.values():
            markers = [*info.metadata, marker_of(info.annotation)]
            found |= {str(one) for one in markers if isinstance(one, ConnectionRef) and one}
    return sorted(found)


def endpoint_problem(endpoint: str, allowed_hosts: Sequence[str] = ()) -> str | None:
    """What is wrong with an endpoint, in a sentence; None when it may be called."""
    problem = check_url(endpoint, conf.load().allow_loopback)
    if problem is None and not host_allowed(endpoint, allowed_hosts):
        return _("The host of the endpoint isn't one of the allowed hosts.")
    return problem


def moved_on(connection_id: int, *, base_revision: int | None, wanted: Mapping[str, Any]) -> str | None:
    """What somebody else has changed since `base_revision`, in a sentence; None when nobody has."""
    present = Connection.objects.get(pk=connection_id)
    if present.revision == base_revision:
        return None
    other = [
        f"{name}: {getattr(present, name)}"
        for name in SEEN
        if name in wanted and getattr(present, name) != wanted[name]
    ]
    return _("Someone else has changed this connection meanwhile. It is now: %s") % ("; ".join(other) or present.name)


def save(connection: Connection, *, base_revision: int | None, secret: str | None = None) -> None:
    """Saves a connection as it was changed from that revision (None: a new one).

    `secret` None keeps the present one, "" removes it. What was down is tried again at once. Raises `Refused` for an
    endpoint that may not be called, and when somebody else has changed the connection since, saying what.
    """
    problem = endpoint_problem(connection.endpoint, connection.hosts())
    if problem is not None:
        raise Refused(problem)
    with transaction.atomic():
        if base_revision is not None:
            Connection.objects.select_for_update(no_key=True).get(pk=connection.pk)
            changed = moved_on(connection.pk, base_revision=base_revision, wanted=vars(connection))
            if changed is not None:
                raise Refused(changed)
        connection.revision = 0 if base_revision is None else base_revision + 1
        if secret is not None:
            connection.set_secret(secret)
        connection.changed_at = clock.now()
        connection.save(update_fields=KEPT if base_revision is not None else None)
        tried = base_revision is not None and breakers.try_now(connection.pk, now=connection.changed_at)
        pauses.bump_rules(connection.tenant_id)
        # After the caller's transaction, too: it has locked the lane, and timers are locked before lanes.
        if tried:
            transaction.on_commit(partial(hurry, connection.tenant_id))
        transaction.on_commit(partial(give_places, [connection.pk]))  # it may have more of them


def switch_on(connection_id: int, reason: str = "") -> None:
    """Lets a connection that is down or off be used again; what waits for it goes on. Twice does nothing more.

    Raises `Connection.DoesNotExist`.
    """
    connection = Connection.objects.get(pk=connection_id)
    with transaction.atomic():
        before = connection.breaker
        closed = breakers.close(connection_id)
        if closed:
            audit.record(
                "switch_on",
                f"connection:{connection_id}",
                tenant_id=connection.tenant_id,
                reason=reason,
                before={"breaker": before, "error": connection.last_error},
                after={"breaker": CLOSED},
            )
            pauses.bump_rules(connection.tenant_id)
            transaction.on_commit(partial(hurry, connection.tenant_id))


@dataclass(frozen=True, slots=True)
class ConnectionHealth:
    """How a connection does: its breaker, since when it is down, when it is tried again, and its calls of late.

    `failing` counts different records, `succeeded` calls, both of the last quarter of an hour.
    """

    breaker: str
    since: datetime | None
    tried_at: datetime | None
    error: str
    failing: int
    succeeded: int
    last_ok_at: datetime | None
    last_failed_at: datetime | None

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.breaker == OFF:
            return _("Off: it hasn't answered for a day. Its steps wait until somebody switches it on again.")
        if self.breaker != CLOSED:
            return _("Down since %(since)s. Its steps wait; it is tried again at %(tried)s.") % {
                "since": moment(self.since),
                "tried": moment(self.tried_at),
            }
        if self.failing:
            return _("Some calls fail: %(failing)d records of late, beside %(succeeded)d calls that succeeded.") % {
                "failing": self.failing,
                "succeeded": self.succeeded,
            }
        return _("Well.") if self.last_ok_at else _("Not used of late.")


def health(connection: Connection) -> ConnectionHealth:
    """How a connection does at this moment."""
    found = breakers.of_late(connection.pk, now=clock.now())
    return ConnectionHealth(
        breaker=connection.breaker,
        since=connection.breaker_since,
        tried_at=connection.breaker_until,
        error=connection.last_error,
        **found._asdict(),
    )


def moment(at: datetime | None) -> str:
    """A moment as these sentences write it, in the present time zone."""
    return formats.date_format(timezone.localtime(at), "j M Y, H:i:s") if at is not None else ""


def delete(connection: Connection) -> list[Rule]:
    """Deletes a connection and switches off the rules that name it, which it answers; their people are told."""
    tenant_id = connection.tenant_id
    with transaction.atomic(), acting_for(tenant_id):
        # As whoever pauses or resumes it does, so that no pause is opened for it meanwhile.
        Connection.objects.select_for_update(no_key=True).get(pk=connection.pk)
        for pause in Pause.objects.filter(
            scope="connection", tenant_id=tenant_id, subject_id=connection.pk, ended_at=None
        ):
            pauses.end_pause(pause.pk)
        connection.delete()
        broken = switch_off_broken()
        pauses.bump_rules(tenant_id)
    return broken
