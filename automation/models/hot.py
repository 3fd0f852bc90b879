"""The tenant of rows that are written by the thousand."""

from django.db import models

from tenants.models import Tenant


def unchecked_tenant() -> "models.ForeignKey[Tenant, Tenant]":
    """A link to the tenant that the database doesn't check with every row.

    Each check locks the tenant's row, which all its writers share. Such rows get their tenant from a row that is
    checked, and a tenant is closed, never deleted.
    """
    return models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False)
