"""What people do to many dead letters: how fast, how far it has come, and when it stops by itself."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from automation.core.states import BULK_STATES
from tenants.models import TenantOwned


class BulkJob(TenantOwned):
    """A verb done to the open dead letters that fit, in the order of their ids, at a pace that survives a restart."""

    verb = models.CharField(max_length=16)
    filters = models.JSONField(default=dict)
    rate = models.FloatField()  # a second
    most = models.IntegerField(null=True, blank=True)  # so many at most
    stop_after = models.IntegerField(null=True, blank=True)  # stops when so many have failed again
    state = models.CharField(max_length=12, default="running", db_default="running")
    reason = models.CharField(max_length=500, default="", db_default="", blank=True)  # why a person asked for it
    actor = models.CharField(max_length=200, default="", db_default="", blank=True)
    actor_id = models.BigIntegerField(null=True)
    last_id = models.BigIntegerField(default=0, db_default=0)  # letters up to here are seen to
    until_id = models.BigIntegerField()  # later ones aren't its business
    next_at = models.DateTimeField()  # when the next one is due
    done = models.IntegerField(default=0, db_default=0)
    refused = models.IntegerField(default=0, db_default=0)
    refusals = models.JSONField(default=dict)  # {sentence: how often}
    failed_again = models.IntegerField(default=0, db_default=0)
    taking_back = models.BooleanField(default=False, db_default=False)  # ended, and not all is back that nobody began
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(state__in=BULK_STATES), name="automation_bulk_state")]
        indexes = [
            models.Index(fields=["id"], name="automation_bulk_running", condition=Q(state="running")),
            models.Index(fields=["id"], name="automation_bulk_taking_back", condition=Q(taking_back=True)),
        ]

    def __str__(self) -> str:
        return f"bulk job {self.pk}"
