"""What imports leave behind: which rule has had its one run for which batch."""

from django.db import models
from django.db.models.functions import Now

from automation.models.rules import Rule
from tenants.models import TenantOwned


class ServedBatch(TenantOwned):
    """A rule that runs once for each import has run for this batch: for the record of this event."""

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    batch = models.CharField(max_length=80)
    event_id = models.BigIntegerField()  # no link: the event may be pruned, and the batch stays served
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "rule", "batch"], name="automation_served_once"),
        ]

    def __str__(self) -> str:
        return f"batch {self.batch}"
