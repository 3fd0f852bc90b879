"""The manager that shows one tenant's rows only."""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from django.db import models

from tenants.context import owner_for_write, tenant_filter

M = TypeVar("M", bound=models.Model)


class TenantQuerySet(models.QuerySet[M]):
    """Rows of tenants; every write that goes around `save()` gets the same check of the owner."""

    def bulk_create(self, objs: Iterable[M], *args: Any, **kwargs: Any) -> list[M]:
        """Insert many, each for the tenant acted for where it names none; raise `OtherTenantError` for another's."""
        rows = list(objs)
        for row in rows:
            give_owner(row)
        return super().bulk_create(rows, *args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        """Update as usual, but never move rows to another tenant."""
        if "tenant" in kwargs or "tenant_id" in kwargs:
            raise ValueError("A row never changes its tenant.")
        return super().update(**kwargs)

    def in_scope(self) -> Self:
        """Limit to the tenant acted for; raise `NoTenantError` when there is no scope at all."""
        tenant_id = tenant_filter()
        return self if tenant_id is None else self.filter(tenant_id=tenant_id)


class TenantManager(models.Manager[M]):
    """The default manager of tenant-owned models: forms, the admin, reverse relations and unique checks all use it.

    A model with a queryset of its own takes `TenantManager.from_queryset(ThatQuerySet)`, where that one inherits
    `TenantQuerySet`. Asking it for rows raises `NoTenantError` where no tenant is set.
    """

    _queryset_class = TenantQuerySet

    def get_queryset(self) -> TenantQuerySet[M]:
        """Return the rows in scope."""
        rows: TenantQuerySet[M] = super().get_queryset()  # type: ignore[assignment]  # made from _queryset_class
        return rows.in_scope()


def give_owner(row: models.Model) -> None:
    """Set the row's tenant to the one acted for where it has none; raise when it is another's."""
    tenant_id = owner_for_write(row.tenant_id)  # type: ignore[attr-defined]  # every tenant-owned model has it
    if row.tenant_id is None:  # type: ignore[attr-defined]
        row.tenant_id = tenant_id  # type: ignore[attr-defined]
