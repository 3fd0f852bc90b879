"""Reads which rules and connections of a tenant are paused, and at which pace kept events start their runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from automation.models import Connection, Drip, Pause


@dataclass(frozen=True, slots=True)
class Pace:
    """Events up to `kept_until` were kept by a pause and start their runs at the rate of a drip."""

    drip_id: int
    kept_until: int


def paused(tenant_id: int, connections: Mapping[str, Connection]) -> tuple[frozenset[int], dict[str, str]]:
    """The paused rules, and by name the paused connections with the reason that their steps wait for."""
    rows = list(Pause.objects.filter(tenant_id=tenant_id, ended_at=None).values_list("scope", "subject_id", "actor"))
    stopped = {subject: "paused" if who else "endpoint_down" for scope, subject, who in rows if scope == "connection"}
    return (
        frozenset(subject for scope, subject, _who in rows if scope == "rule" and subject),
        {name: stopped[one.pk] for name, one in connections.items() if one.pk in stopped},
    )


def pace_of(tenant_id: int) -> Pace | None:
    """What the end of the tenant's pause still lets out; None where kept events have no rate."""
    drip = Drip.objects.filter(tenant_id=tenant_id, scope="tenant", ended_at=None, kept_until__isnull=False).first()
    return Pace(drip.pk, drip.kept_until) if drip is not None and drip.kept_until is not None else None
