"""Keeps a tenant's connections: each change reaches the workers at their next claim."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation import conf
from automation.catalog import registry
from automation.catalog.params import ConnectionRef, marker_of
from automation.engine.operate import Refused
from automation.engine.references import switch_off_broken
from automation.models import Connection, Rule
from automation.outbound.addresses import check_url
from automation.store import clock, pauses
from tenants.context import acting_for

SEEN = ("name", "kind", "endpoint", "settings")


def kinds() -> list[str]:
    """The kinds of connections that the registered actions ask for, sorted."""
    found: set[str] = set()
    for action in registry.actions.values():
        for info in action.Params.model_fields.values():
            markers = [*info.metadata, marker_of(info.annotation)]
            found |= {str(one) for one in markers if isinstance(one, ConnectionRef) and one}
    return sorted(found)


def endpoint_problem(endpoint: str) -> str | None:
    """What is wrong with an endpoint, in a sentence; None when it may be called."""
    return check_url(endpoint, conf.load().allow_loopback)


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

    `secret` None keeps the present one, "" removes it. Raises `Refused` for an endpoint that may not be called, and
    when somebody else has changed the connection since, saying what.
    """
    problem = endpoint_problem(connection.endpoint)
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
        connection.save()
        pauses.bump_rules(connection.tenant_id)


def delete(connection: Connection) -> list[Rule]:
    """Deletes a connection and switches off the rules that name it, which it answers; their people are told."""
    tenant_id = connection.tenant_id
    with transaction.atomic(), acting_for(tenant_id):
        connection.delete()
        broken = switch_off_broken()
        pauses.bump_rules(tenant_id)
    return broken
