"""Whose turn retention is, under which terms, and how far it has come."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from automation.store import statements


@dataclass(frozen=True, slots=True)
class TermsRow:
    """What a tenant's limits say, by the database's clock, and where the last round of it has stopped."""

    now: datetime
    details_days: int
    header_days: int
    events_kept: int
    closed_at: datetime | None
    purged_at: datetime | None
    runs_from: int
    events_from: int


def next_tenant(*, every: float) -> int | None:
    """The tenant whose last round, or beginning, is the longest ago, and more than `every` seconds."""
    found: int | None = statements.value(
        "SELECT t.id FROM tenants_tenant t LEFT JOIN automation_retention r ON r.tenant_id = t.id"
        " WHERE (r.purged_at IS NULL OR t.closed_at IS NULL)"
        " AND COALESCE(r.finished_at, t.created_at) < automation_now() - %s"
        " ORDER BY COALESCE(r.finished_at, t.created_at), t.id LIMIT 1",
        [timedelta(seconds=every)],
    )
    return found


def begin(tenant_id: int) -> TermsRow:
    """Notes that a round begins; a tenant that was opened again is purged no more."""
    statements.count(
        "INSERT INTO automation_retention (tenant_id, started_at, removed) VALUES (%s, automation_now(), '{}')"
        " ON CONFLICT (tenant_id) DO UPDATE SET started_at = automation_now(), removed = '{}',"
        " (purge_began_at, purged_at) = (SELECT automation_retention.purge_began_at, automation_retention.purged_at"
        " FROM tenants_tenant t WHERE t.id = %s AND t.closed_at IS NOT NULL)",
        [tenant_id, tenant_id],
    )
    row = statements.rows(
        "SELECT automation_now(), l.retention_days, l.header_days, l.events_kept, t.closed_at, r.purged_at,"
        " r.runs_from, r.events_from FROM tenants_tenant t JOIN automation_limits l ON l.tenant_id = t.id"
        " JOIN automation_retention r ON r.tenant_id = t.id WHERE t.id = %s",
        [tenant_id],
    )[0]
    return TermsRow(*row)


def note(tenant_id: int, removed: Mapping[str, int]) -> None:
    """Notes what the round has removed so far."""
    statements.count(
        "UPDATE automation_retention SET removed = %s::jsonb WHERE tenant_id = %s", [json.dumps(removed), tenant_id]
    )


def finish(tenant_id: int, *, runs_from: int | None = None, events_from: int | None = None) -> None:
    """Notes that the round is over, and from which ids the next one begins."""
    statements.count(
        "UPDATE automation_retention SET finished_at = automation_now(), runs_from = COALESCE(%s, runs_from),"
        " events_from = COALESCE(%s, events_from) WHERE tenant_id = %s",
        [runs_from, events_from, tenant_id],
    )


def mark_purging(tenant_id: int) -> bool:
    """Notes that a closed tenant's data begins to go; False where it was opened again, by which this waits."""
    with transaction.atomic():
        if not statements.rows(
            "SELECT FROM tenants_tenant WHERE id = %s AND closed_at IS NOT NULL FOR NO KEY UPDATE", [tenant_id]
        ):
            return False
        statements.count(
            "UPDATE automation_retention SET purge_began_at = COALESCE(purge_began_at, automation_now())"
            " WHERE tenant_id = %s",
            [tenant_id],
        )
        return True


def mark_purged(tenant_id: int) -> bool:
    """Notes that nothing of a closed tenant is left; False when that is known, or it was opened again."""
    return (
        statements.count(
            "UPDATE automation_retention r SET purged_at = automation_now(), finished_at = automation_now()"
            " FROM tenants_tenant t WHERE t.id = r.tenant_id AND r.tenant_id = %s AND r.purged_at IS NULL"
            " AND t.closed_at IS NOT NULL",
            [tenant_id],
        )
        == 1
    )


def keep_sweep(name: str, *, holder: uuid.UUID, hold: float) -> bool:
    """Keeps a chore for `hold` more seconds; False when it is somebody else's by now."""
    return (
        statements.count(
            "UPDATE automation_sweep SET expires_at = automation_now() + %s WHERE name = %s AND holder = %s",
            [timedelta(seconds=hold), name, holder],
        )
        == 1
    )
