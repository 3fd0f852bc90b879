"""Comparisons of a draft with the live version over stored events."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from automation.core.states import BACKTEST_STATES, LIVE_BACKTEST
from automation.models.rules import Rule, RuleVersion
from tenants.models import TenantOwned


class Backtest(TenantOwned):
    """One comparison: what was asked, how far it is, and what it found so far. It acts on nothing."""

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    definition = models.JSONField()  # what is compared, as it was when asked: the draft may move on
    revision = models.IntegerField(null=True)  # of the draft
    against = models.ForeignKey(
        RuleVersion, null=True, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )  # null: nothing was live
    since = models.DateTimeField()
    most = models.IntegerField()  # so many events at most, the newest
    state = models.CharField(max_length=10, default="queued", db_default="queued")
    cancel_requested_at = models.DateTimeField(null=True)
    place = models.JSONField(null=True)  # behind which event it goes on: see engine/backtest_events.py
    total = models.IntegerField(default=0, db_default=0)
    judged = models.IntegerField(default=0, db_default=0)
    result = models.JSONField(default=dict)
    error = models.TextField(default="", db_default="", blank=True)
    asked_by = models.CharField(max_length=200, default="", db_default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=BACKTEST_STATES), name="automation_backtest_state"),
        ]
        indexes = [
            models.Index(fields=["id"], name="automation_backtest_open", condition=Q(state__in=LIVE_BACKTEST)),
            models.Index(fields=["tenant", "rule", "id"], name="automation_backtest_rule"),
        ]

    def __str__(self) -> str:
        return f"backtest {self.pk}"
