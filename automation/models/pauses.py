"""Who paused what, why and until when, and what lets out at a rate what was held."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models import Tenant

PAUSE_SCOPES = ["tenant", "rule", "connection", "installation"]
PAUSE_LEVELS = ["new", "hold", "cancel"]
# What becomes of what was held: all of it goes on, only the recent, or nothing.
PAUSE_KEEPS = ["all", "recent", "drop"]
MOST_A_MINUTE = 60_000


class Pause(models.Model):
    """A pause of a tenant, a rule, a connection or the whole installation; open while `ended_at` is empty.

    `keep`, `recent_minutes` and `rate` (a minute; empty: at once) say how it goes on, by itself or as it was resumed.
    From `resumed_at` on that is being done, by several goes where it is much, and by the workers where whoever asked
    for it is gone; an event that was dropped has it as its `matched_at`. `place` is the last tenant that is through.
    """

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
    keep = models.CharField(max_length=8, default="all", db_default="all")
    recent_minutes = models.IntegerField(null=True)
    rate = models.IntegerField(null=True)
    resumed_at = models.DateTimeField(null=True)
    resumed_by = models.CharField(max_length=200, default="", db_default="", blank=True)
    resumed_by_id = models.BigIntegerField(null=True)
    place = models.BigIntegerField(null=True)
    dropped_events = models.IntegerField(default=0, db_default=0)
    dropped_runs = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=PAUSE_SCOPES), name="automation_pause_scope"),
            models.CheckConstraint(condition=Q(level__in=PAUSE_LEVELS), name="automation_pause_level"),
            models.CheckConstraint(condition=Q(keep__in=PAUSE_KEEPS), name="automation_pause_keep"),
            models.CheckConstraint(
                condition=Q(rate__isnull=True) | Q(rate__gte=1, rate__lte=MOST_A_MINUTE), name="automation_pause_rate"
            ),
            models.UniqueConstraint(
                fields=["scope", "tenant", "subject_id"],
                condition=Q(ended_at__isnull=True),
                nulls_distinct=False,
                name="automation_pause_one_open",
            ),
        ]
        indexes = [
            models.Index(fields=["until"], name="automation_pause_until", condition=Q(ended_at__isnull=True)),
            models.Index(
                fields=["resumed_at", "id"],
                name="automation_pause_ending",
                condition=Q(ended_at__isnull=True, resumed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"pause of {self.scope} {self.subject_id or self.tenant_id or ''}".strip()


class Drip(models.Model):
    """What a pause had held and is let out at `rate` a minute, or in portions, oldest first; done at `ended_at`.

    Steps that were due wait as held timers that name it; events up to `kept_until` wait for the matcher. `next_at` is
    when the next one should come, `paced_at` when it may: a restart or a standstill makes no burst. Without `next_at`
    it is the shelf of a rule or connection that is stopped: nothing of it comes out. A rule that is off has no pause.
    """

    pause = models.ForeignKey(Pause, null=True, on_delete=models.CASCADE, related_name="drips")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    scope = models.CharField(max_length=12)
    subject_id = models.BigIntegerField(null=True)
    rate = models.IntegerField(null=True)
    kept_until = models.BigIntegerField(null=True)
    since = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(null=True, db_default=Now())
    paced_at = models.DateTimeField(null=True)
    held = models.IntegerField(default=0, db_default=0)
    released = models.IntegerField(default=0, db_default=0)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(rate__gte=1, rate__lte=MOST_A_MINUTE), name="automation_drip_rate"),
            models.UniqueConstraint(
                fields=["tenant", "scope", "subject_id"],
                condition=Q(ended_at__isnull=True),
                nulls_distinct=False,
                name="automation_drip_one_open",
            ),
        ]
        indexes = [
            models.Index(fields=["next_at"], name="automation_drip_next", condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.rate or 'all'} a minute of tenant {self.tenant_id}"
