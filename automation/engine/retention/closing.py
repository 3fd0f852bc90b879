"""Closes a tenant, and opens it again while all of it is still there."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.engine.retention.terms import RESTORABLE
from automation.models import Retention
from automation.store import clock
from tenants import audit
from tenants.models import Tenant


def close(tenant_id: int, *, reason: str = "") -> datetime:
    """Closes a tenant: its people can't get in and its automations stop at once; answers from when on it is purged.

    Twice does nothing more. Until that moment `reopen` gives everything back.
    """
    with transaction.atomic():
        tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
        if tenant.closed_at is None:
            tenant.closed_at = clock.now()
            tenant.save(update_fields=["closed_at"])
            audit.record("tenant.closed", f"tenant:{tenant_id}", tenant_id=tenant_id, reason=reason)
    return purged_from(tenant)


def reopen(tenant_id: int, *, reason: str = "") -> None:
    """Opens a closed tenant again; its automations go on unless a pause of their own holds them.

    Twice does nothing more. Raises `Refused` once purging has begun.
    """
    with transaction.atomic():
        tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
        if tenant.closed_at is None:
            return
        begun = Retention.objects.filter(tenant_id=tenant_id, purge_began_at__isnull=False).exists()
        if begun or purged_from(tenant) <= clock.now():
            raise Refused(_("The time to open this tenant again is over: its data is being removed."))
        tenant.closed_at = None
        tenant.save(update_fields=["closed_at"])
        audit.record("tenant.reopened", f"tenant:{tenant_id}", tenant_id=tenant_id, reason=reason)


def purged_from(tenant: Tenant) -> datetime:
    """The moment from which on a closed tenant's data is removed."""
    assert tenant.closed_at is not None  # noqa: S101 asked of closed tenants only
    return tenant.closed_at + RESTORABLE
