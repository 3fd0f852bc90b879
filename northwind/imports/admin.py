"""Imports and what became of their rows, for the installation's staff."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from northwind.imports.models import ImportedRow, ImportJob
from northwind.staff import BY_TENANT, ReadOnlyAdmin, by_number, rows_link


@admin.register(ImportJob)
class ImportJobAdmin(ReadOnlyAdmin):
    """How far each import has come."""

    counts = ("rows_total", "rows_done", "created", "updated", "unchanged", "rejected")
    list_display: Any = ("id", "tenant", "kind", "file_name", "batch", *counts, "started_at", "finished_at")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant",)
    readonly_fields = ("what_became_of_them",)

    @admin.display(description=_("rows"))
    def what_became_of_them(self, job: ImportJob) -> SafeString:
        """Where to find its rows."""
        return rows_link(ImportedRow, str(_("What became of each row")), job__id__exact=job.pk)


@admin.register(ImportedRow)
class ImportedRowAdmin(ReadOnlyAdmin):
    """Found by their number, that of the record, or their import."""

    found_by = ("id", "record")
    list_display = ("id", "tenant", "job", "number", "line", "outcome", "record", "problems")
    list_filter = (BY_TENANT, by_number("job__id__exact", _("import (number)")))
    list_select_related = ("tenant", "job")
