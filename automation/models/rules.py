"""What a tenant designs: rules, their drafts, and the immutable versions that runs pin."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models import TenantOwned


class Rule(TenantOwned):
    """A rule of one tenant: its place in the order, its switch, and which version is live."""

    OFF_MODES = ["hold", "finish"]  # what runs that wait do while the rule is off

    name = models.CharField(max_length=120)
    position = models.IntegerField(default=0)
    on = models.BooleanField(default=False)
    off_mode = models.CharField(max_length=8, default="hold")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    published = models.ForeignKey("RuleVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    deleted_at = models.DateTimeField(null=True, blank=True)
    # How far it has come with records that were there before it, as engine/rules/taking_up.py keeps it.
    taking_up = models.JSONField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="automation_rule_tenant_id"),
            models.CheckConstraint(condition=Q(off_mode__in=["hold", "finish"]), name="automation_rule_off_mode"),
        ]
        indexes = [
            models.Index(fields=["tenant", "position", "id"], name="automation_rule_order"),
            models.Index(fields=["id"], name="automation_rule_taking_up", condition=Q(taking_up__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class RuleVersion(TenantOwned):
    """A published definition. Immutable: the database refuses an UPDATE."""

    rule = models.ForeignKey(Rule, on_delete=models.PROTECT, related_name="versions")
    number = models.IntegerField()
    definition = models.JSONField()
    sha256 = models.CharField(max_length=64)
    schema_version = models.IntegerField(default=1)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_constraint=False,
    )
    note = models.CharField(max_length=400, default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "number"], name="automation_version_number"),
            models.UniqueConstraint(fields=["tenant", "id"], name="automation_version_tenant_id"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class RuleDraft(TenantOwned):
    """What is being edited: any JSON, valid or not, with a revision against lost edits."""

    rule = models.OneToOneField(Rule, on_delete=models.CASCADE, related_name="draft")
    definition = models.JSONField(default=dict)
    revision = models.IntegerField(default=0)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    changed_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"draft of rule {self.rule_id}"
