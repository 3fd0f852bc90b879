"""The hot tables: a tenant's lane, its timers, the workers, and the chores' holders."""

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.lookups import LessThan

from automation.core.states import TIMER_KINDS, TIMER_STATES
from tenants.models import Tenant


class Lane(models.Model):
    """A tenant's share of the workers: mutex, cap, fairness position, pause and wake time in one narrow row."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="lane")
    pool = models.CharField(max_length=40, default="northwind", db_default="northwind")
    max_running = models.IntegerField(default=4, db_default=4)
    running = models.IntegerField(default=0, db_default=0)
    weight = models.IntegerField(default=100, db_default=100)
    stride_pass = models.BigIntegerField(default=0, db_default=0)
    due_hint = models.BooleanField(default=False, db_default=False)
    wake_at = models.DateTimeField(null=True, blank=True)
    paused = models.BooleanField(default=False, db_default=False)
    hold_new = models.BooleanField(default=False, db_default=False)
    rules_version = models.BigIntegerField(default=0, db_default=0)
    runnable = models.GeneratedField(
        expression=models.ExpressionWrapper(
            Q(due_hint=True) & Q(paused=False) & Q(LessThan(F("running"), F("max_running"))), models.BooleanField()
        ),
        output_field=models.BooleanField(),
        db_persist=True,
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(max_running__gte=0), name="automation_lane_cap"),
            models.CheckConstraint(condition=Q(running__gte=0), name="automation_lane_running"),
            models.CheckConstraint(condition=Q(weight__gte=1, weight__lte=100_000), name="automation_lane_weight"),
        ]
        indexes = [
            # runnable, ascending: the claim; not runnable, from the end: the pool's position when all are idle.
            models.Index(fields=["pool", "runnable", "stride_pass", "id"], name="automation_lane_turn"),
            models.Index(
                fields=["wake_at"], name="automation_lane_wake", condition=Q(due_hint=False, wake_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"lane of tenant {self.tenant_id}"


class Timer(models.Model):
    """A durable wake-up; claiming a due one is the only way work starts. The row is deleted when it is settled."""

    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="timers", db_index=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=12)
    state = models.CharField(max_length=8, default="pending", db_default="pending")
    due_at = models.DateTimeField()
    run_id = models.BigIntegerField(null=True)
    step_id = models.BigIntegerField(null=True)
    subject_id = models.BigIntegerField(null=True)
    again = models.BooleanField(default=False, db_default=False)
    lease_seq = models.BigIntegerField(default=0, db_default=0)
    deliveries = models.IntegerField(default=0, db_default=0)
    lost = models.IntegerField(default=0, db_default=0)
    # No foreign key: the reaper deletes the worker's row, and a constraint would make claims and reaper wait.
    worker_id = models.UUIDField(null=True)
    deadline_at = models.DateTimeField(null=True)
    # What lets it out at a rate, as long as it is held; no foreign key, as every insert would check it.
    drip_id = models.BigIntegerField(null=True)
    # The connection that it waits for a place with, while it is due at that very time; once there is one, its turn.
    waits_for = models.BigIntegerField(null=True)
    waits_until = models.DateTimeField(null=True)
    has_turn = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=TIMER_KINDS), name="automation_timer_kind"),
            models.CheckConstraint(condition=Q(state__in=TIMER_STATES), name="automation_timer_state"),
            models.CheckConstraint(
                condition=Q(state="leased", worker_id__isnull=False) | (~Q(state="leased") & Q(worker_id__isnull=True)),
                name="automation_timer_leased",
            ),
            models.UniqueConstraint(fields=["tenant"], condition=Q(kind="match"), name="automation_timer_one_match"),
            models.UniqueConstraint(
                fields=["step_id"], condition=Q(step_id__isnull=False), name="automation_timer_one_per_step"
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "due_at", "id"], name="automation_timer_pending", condition=Q(state="pending")
            ),
            models.Index(fields=["worker_id"], name="automation_timer_leased_by", condition=Q(state="leased")),
            models.Index(
                fields=["lane", "due_at"], name="automation_timer_match", condition=Q(kind="match", state="pending")
            ),
            models.Index(
                fields=["drip_id", "due_at", "id"], name="automation_timer_drip", condition=Q(drip_id__isnull=False)
            ),
            models.Index(
                fields=["waits_for", "has_turn", "id"],
                name="automation_timer_place",
                condition=Q(waits_until=F("due_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} timer {self.pk}"


class Worker(models.Model):
    """One row per pump: its lease, renewed by the beat. A pump that ends by itself deletes its row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    pool = models.CharField(max_length=40)
    release = models.CharField(max_length=40, default="", db_default="", blank=True)
    host = models.CharField(max_length=255, default="", db_default="", blank=True)
    pid = models.IntegerField(default=0, db_default=0)
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"worker {self.id} in {self.pool}"


class Sweep(models.Model):
    """Who does a chore at the moment: one holder by an expiring row, never a lock that outlives its process."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.UUIDField(null=True)
    expires_at = models.DateTimeField(null=True)
    last_ok_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField(null=True)
    place = models.BigIntegerField(null=True)  # how far a chore has come that is done bit by bit; null: not begun

    def __str__(self) -> str:
        return self.name


class Limits(models.Model):
    """A tenant's limits that no claim reads; its cap and weight are the lane's."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="automation_limits")
    max_depth = models.IntegerField(default=5, db_default=5)
    events_kept = models.IntegerField(default=100_000, db_default=100_000)
    rules = models.IntegerField(default=500, db_default=500)
    retention_days = models.IntegerField(default=30, db_default=30)
    header_days = models.IntegerField(default=400, db_default=400)  # afterwards nothing of a run is left
    revision = models.IntegerField(default=0, db_default=0)
    # Of what people were told, in percent, and when somebody last looked.
    told_events = models.SmallIntegerField(default=0, db_default=0, editable=False)
    told_rules = models.SmallIntegerField(default=0, db_default=0, editable=False)
    told_running = models.SmallIntegerField(default=0, db_default=0, editable=False)
    used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name_plural = "limits"
        constraints = [
            models.CheckConstraint(condition=Q(max_depth__gte=1, max_depth__lte=10), name="automation_limits_depth"),
            models.CheckConstraint(
                condition=Q(events_kept__gte=0, retention_days__gte=1, header_days__gte=F("retention_days")),
                name="automation_limits_retention",
            ),
        ]

    def __str__(self) -> str:
        return f"limits of tenant {self.tenant_id}"
