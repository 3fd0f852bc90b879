"""How far retention has come with each tenant."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, pretty
from automation.models import Retention


@admin.register(Retention)
class RetentionAdmin(ReadOnlyAdmin):
    """The last round of each tenant; limits say what is kept for how long."""

    found_by = ("tenant_id",)
    search_fields = ("tenant_id",)
    ordering = ("-tenant_id",)
    list_display = ("tenant", "started_at", "finished_at", "said", "purged_at")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant",)
    exclude = ("removed",)
    readonly_fields = ("counts",)

    @admin.display(description=_("removed"))
    def said(self, row: Retention) -> str:
        """What the last round removed, in a line."""
        return ", ".join(f"{count} {what}" for what, count in sorted(row.removed.items()))

    @admin.display(description=_("removed"))
    def counts(self, row: Any) -> SafeString:
        """What the last round removed."""
        return pretty(row.removed)
