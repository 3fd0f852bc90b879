"""Writes what a person did into the audit, in the caller's transaction."""

from typing import Any

from tenants.context import Actor, current_actor, owner_for_write
from tenants.models import AuditEntry


def record(
    verb: str,
    target: str,
    *,
    tenant_id: int | None,
    reason: str = "",
    before: Any = None,
    after: Any = None,
    actor: Actor | None = None,
) -> AuditEntry:
    """Write that `actor` (the current one by default) did `verb` to `target`, such as "rule:12".

    `tenant_id` None means the installation itself. `before` and `after` are JSON values. Raises `OtherTenantError`
    for a tenant other than the one acted for. Commits and rolls back with the caller.
    """
    who = actor or current_actor()
    entry = AuditEntry(
        tenant_id=None if tenant_id is None else owner_for_write(tenant_id),
        actor_id=who.id,
        actor_name=who.name,
        verb=verb,
        target=target,
        reason=reason,
        before=before,
        after=after,
    )
    entry.save(force_insert=True)
    return entry
