"""Recorded facts: what changed, who or what made it, and what rules are judged on."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from automation.models.hot import unchecked_tenant
from tenants.models import TenantOwned


class Event(TenantOwned):
    """A fact, written in the transaction of the change itself. Unmatched events are the outbox."""

    tenant = unchecked_tenant()
    kind = models.CharField(max_length=40)  # the trigger kind it can start: record_changed, custom_event, manual
    change = models.CharField(max_length=8, default="", blank=True)  # created, updated, deleted; empty otherwise
    name = models.CharField(
        max_length=120, default="", blank=True
    )  # of a custom event; the id of the rule that a manual one, or a record taken up, is for
    model = models.CharField(max_length=80, default="", blank=True)  # "helpdesk.ticket"
    record = models.BigIntegerField(null=True)
    facts = models.JSONField(default=dict)
    actor = models.CharField(max_length=200, default="", blank=True)  # a name for people to read
    actor_id = models.BigIntegerField(null=True)  # the user, where a person did it
    source = models.CharField(max_length=12)  # person, api, import, automation, schedule
    batch = models.CharField(max_length=80, default="", blank=True)
    # Null means "came without a key", and isn't unique.
    dedupe_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 see above
    body_sha256 = models.CharField(max_length=64, default="", blank=True)
    root_event_id = models.BigIntegerField(null=True)  # null: this event is the root of its chain
    parent_event_id = models.BigIntegerField(null=True)
    cause_rule_id = models.BigIntegerField(null=True)
    cause_run_id = models.BigIntegerField(null=True)
    cause_step_id = models.BigIntegerField(null=True)
    depth = models.SmallIntegerField(default=0)
    path = models.JSONField(default=list)  # [[rule id, "helpdesk.ticket:12"], …], the chain so far
    created_at = models.DateTimeField(db_default=Now())
    matched_at = models.DateTimeField(null=True)
    details_removed_at = models.DateTimeField(null=True)  # by retention or an erasing: `facts` are empty since

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "dedupe_key"],
                condition=Q(dedupe_key__isnull=False),
                name="automation_event_dedupe",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "id"], name="automation_event_outbox", condition=Q(matched_at__isnull=True)),
            models.Index(fields=["tenant", "model", "record", "id"], name="automation_event_record"),
            models.Index(fields=["batch", "tenant", "id"], name="automation_event_batch", condition=~Q(batch="")),
            models.Index(
                fields=["cause_run_id"], name="automation_event_cause", condition=Q(cause_run_id__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"event {self.pk}"

    @property
    def record_key(self) -> str:
        """The record as loop guard and keys name it, like "helpdesk.ticket:12"; the event itself where it has none."""
        return f"{self.model}:{self.record}" if self.record is not None else f"event:{self.pk}"
