"""Backtests: how far they are, and what they have found."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_number, by_word, pretty
from automation.core.states import BACKTEST_STATES
from automation.engine import backtest
from automation.engine.backtest_report import report
from automation.models import Backtest
from tenants.context import acting_for


@admin.register(Backtest)
class BacktestAdmin(ReadOnlyAdmin):
    """Started on the page of a rule, or by `automation_backtest`; here they are looked at and stopped."""

    heavy = ("definition", "result")
    list_display = ("id", "tenant", "rule", "state", "judged", "total", "asked_by", "created_at", "ended_at")
    list_filter = (
        BY_TENANT,
        by_word("state", _("state"), BACKTEST_STATES),
        by_number("rule__id__exact", _("rule (number)")),
    )
    list_select_related = ("tenant", "rule")
    exclude = ("definition", "result", "place")
    readonly_fields = ("found",)
    actions = ("cancel",)

    @admin.action(description=_("Stop: what was found so far stays"), permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Backtest]) -> None:
        """At the end of the slice that a worker is on."""
        stopped = 0
        for row in rows:
            with acting_for(row.tenant_id):
                stopped += backtest.cancel(row.pk)
        messages.success(request, str(_("Stopped: %d.")) % stopped)

    @admin.display(description=_("found"))
    def found(self, row: Any) -> SafeString:
        """Counts, samples, estimates, and what is only approximate."""
        with acting_for(row.tenant_id):
            whole = report(row).to_json()
        return pretty({name: whole[name] for name in ("counts", "estimate", "remarks", "outdated", "samples")})
