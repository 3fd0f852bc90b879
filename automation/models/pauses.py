"""Who paused what, why and until when: the one record of every pause."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models import Tenant

PAUSE_SCOPES = ["tenant", "rule", "connection", "installation"]
PAUSE_LEVELS = ["new", "hold", "cancel"]


class Pause(models.Model):
    """A pause of a tenant, a rule, a connection or the whole installation; open while `ended_at` is empty."""

    scope = models.CharField(max_length=12)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    subject_id = models.BigIntegerField(null=True)  # the rule or connection
    level = models.CharField(max_length=8, default="hold")
    reason = models.CharField(max_length=400, default="", blank=True)
    actor = models.CharField(max_length=200, default="", blank=True)  # empty: the engine itself
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=PAUSE_SCOPES), name="automation_pause_scope"),
            models.CheckConstraint(condition=Q(level__in=PAUSE_LEVELS), name="automation_pause_level"),
            models.UniqueConstraint(
                fields=["scope", "tenant", "subject_id"],
                condition=Q(ended_at__isnull=True),
                nulls_distinct=False,
                name="automation_pause_one_open",
            ),
        ]

    def __str__(self) -> str:
        return f"pause of {self.scope} {self.subject_id or self.tenant_id or ''}".strip()
