"""What happened: runs, the execution of each step, every attempt, and what waits for a person."""

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KT
from django.db.models.functions import Now

from automation.core.states import ATTEMPT_OUTCOMES, EFFECT_STATES, LIVE_RUN, RUN_STATES, STEP_STATES
from automation.models.events import Event
from automation.models.hot import unchecked_tenant
from automation.models.rules import Rule, RuleVersion
from tenants.models import TenantOwned


class Run(TenantOwned):
    """One execution of one version of a rule for one event; a suppressed one says why nothing was done."""

    tenant = unchecked_tenant()
    # Not checked by the database: a check with each run would share locks on rule, version and event, and one with each
    # event that goes would read all runs. Nothing but retention deletes any of them, and it looks for runs first.
    rule = models.ForeignKey(Rule, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    rule_version = models.ForeignKey(
        RuleVersion, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="runs", db_index=False, db_constraint=False)
    origin = models.CharField(max_length=8, default="event", db_default="event")
    state = models.CharField(max_length=20, default="pending")
    reason = models.CharField(max_length=24, default="", db_default="", blank=True)
    model = models.CharField(max_length=80, default="", blank=True)
    record = models.BigIntegerField(null=True)
    root_event_id = models.BigIntegerField()
    depth = models.SmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    forked_from_run = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    forked_from_step = models.CharField(max_length=200, default="", db_default="", blank=True)
    details_removed_at = models.DateTimeField(null=True)  # by retention: states and times are left
    epoch = models.SmallIntegerField(default=0, db_default=0)  # of a replay that sends again as new; adds to its steps'

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RUN_STATES), name="automation_run_state"),
            models.UniqueConstraint(
                fields=["event", "rule"],
                condition=Q(origin="event", forked_from_run__isnull=True),
                name="automation_run_once",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "state", "id"], name="automation_run_state_id"),
            models.Index(fields=["tenant", "model", "record", "id"], name="automation_run_record"),
            models.Index(fields=["tenant", "rule", "id"], name="automation_run_rule"),
            models.Index(fields=["root_event_id"], name="automation_run_budget", condition=Q(depth__gte=2)),
            models.Index(
                fields=["tenant", "model", "record"], name="automation_run_open", condition=Q(state__in=LIVE_RUN)
            ),
            models.Index(
                fields=["forked_from_run", "event"],
                name="automation_run_fork",
                condition=Q(forked_from_run__isnull=False),
            ),
            # Runs whose time is over, and the round of the watch over live runs, of all tenants.
            models.Index(fields=["deadline_at", "id"], name="automation_run_deadline", condition=Q(state__in=LIVE_RUN)),
            models.Index(
                fields=["event", "rule"], name="automation_run_replays", condition=Q(forked_from_run__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"


class StepExecution(TenantOwned):
    """The execution of one step of a run: its inputs, its outcome, and how sure we are of its effect."""

    tenant = unchecked_tenant()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="steps", db_index=False)
    path = models.CharField(max_length=200)
    epoch = models.SmallIntegerField(default=0, db_default=0)
    kind = models.CharField(max_length=12)
    action = models.CharField(max_length=60, default="", db_default="", blank=True)
    state = models.CharField(max_length=12, default="pending")
    reason = models.CharField(max_length=24, default="", db_default="", blank=True)
    attempts = models.IntegerField(default=0, db_default=0)
    retried_at_attempt = models.IntegerField(
        default=0, db_default=0
    )  # attempts when a person last retried: they don't count
    deliveries = models.IntegerField(default=0, db_default=0)
    effect_state = models.CharField(max_length=10, default="none", db_default="none")
    # Where it has a place while it may be on its way: the name of its connection, or "#12 #57" where it uses several.
    connection = models.TextField(default="", db_default="", blank=True)
    idempotency_key = models.CharField(max_length=64, default="", db_default="", blank=True)
    request_sha256 = models.CharField(max_length=64, default="", db_default="", blank=True)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error = models.TextField(default="", db_default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=STEP_STATES), name="automation_step_state"),
            models.CheckConstraint(condition=Q(effect_state__in=EFFECT_STATES), name="automation_step_effect"),
            models.UniqueConstraint(fields=["run", "path", "epoch"], name="automation_step_once"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "idempotency_key"], name="automation_step_key", condition=~Q(idempotency_key="")
            ),
            # The limit of messages to one recipient.
            models.Index(
                F("tenant"),
                KT("input__recipient"),
                F("started_at"),
                name="automation_step_recipient",
                condition=Q(input__has_key="recipient"),
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.path} of run {self.run_id}"


class Attempt(TenantOwned):
    """One try of a step: written open with the intent, closed once, never changed after."""

    tenant = unchecked_tenant()
    step = models.ForeignKey(StepExecution, on_delete=models.PROTECT, related_name="tries", db_index=False)
    number = models.IntegerField()
    worker_id = models.UUIDField(null=True)
    lease_seq = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=10, default="", db_default="", blank=True)
    request = models.TextField(default="", db_default="", blank=True)
    answer = models.TextField(default="", db_default="", blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=ATTEMPT_OUTCOMES), name="automation_attempt_outcome"),
            models.UniqueConstraint(fields=["step", "number"], name="automation_attempt_once"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of step {self.step_id}"


class DeadLetter(TenantOwned):
    """A step that failed for good and waits for a person, with its whole context; or an event set aside as poison."""

    run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="dead_letters")
    step = models.ForeignKey(
        StepExecution, null=True, on_delete=models.PROTECT, related_name="dead_letters", db_index=False
    )
    event = models.ForeignKey(Event, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.CharField(max_length=24)
    error = models.TextField(default="", db_default="", blank=True)
    snapshot = models.JSONField(default=dict)
    opened_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=24, default="", db_default="", blank=True)
    actor = models.CharField(max_length=200, default="", db_default="", blank=True)
    bulk_id = models.BigIntegerField(null=True)  # the bulk job that resolved it

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["step"], condition=Q(resolved_at__isnull=True, step__isnull=False), name="automation_dead_open"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "id"], name="automation_dead_list", condition=Q(resolved_at__isnull=True)),
            models.Index(fields=["step"], name="automation_dead_step", condition=Q(step__isnull=False)),
            models.Index(fields=["event"], name="automation_dead_event", condition=Q(event__isnull=False)),
            models.Index(fields=["bulk_id"], name="automation_dead_bulk", condition=Q(bulk_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"dead letter {self.pk}"
