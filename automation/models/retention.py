"""How far retention has come with each tenant."""

from django.db import models

from tenants.models import Tenant


class Retention(models.Model):
    """One row a tenant: its last round, what the present one has removed so far, and whether the tenant is purged.

    Every run below `runs_from`, and every event without a run below `events_from`, was looked at and is done with.
    """

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, primary_key=True, related_name="+")
    runs_from = models.BigIntegerField(default=0, db_default=0)
    events_from = models.BigIntegerField(default=0, db_default=0)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    removed = models.JSONField(default=dict)  # what the round removed, {"runs": 12, …}
    purge_began_at = models.DateTimeField(null=True)  # from then on a closed tenant can't be opened again
    purged_at = models.DateTimeField(null=True)  # of a closed tenant: nothing of it is left

    def __str__(self) -> str:
        return f"retention of tenant {self.tenant_id}"
