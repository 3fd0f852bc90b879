"""A tenant's own mail addresses: what comes from rules never goes to them."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from tenants.models import TenantOwned


class OwnAddress(TenantOwned):
    """An address at which the tenant itself receives mail, and whether machines that write to it are answered."""

    address = models.EmailField()
    answers_automatic = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Rules may answer mail to this address although it says that a machine sent it.",
    )
    revision = models.IntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = "own address"
        verbose_name_plural = "own addresses"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "address"], name="automation_own_address"),
            models.CheckConstraint(condition=Q(address=Lower("address")), name="automation_own_address_lower"),
            models.UniqueConstraint(fields=["tenant", "id"], name="automation_own_address_tenant_id"),
        ]

    def __str__(self) -> str:
        return self.address
