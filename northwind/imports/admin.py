"""Imports and what became of their rows, for the installation's staff."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from northwind.imports.models import ImportedRow, ImportJob


class LookedAt(admin.ModelAdmin[Any]):
    """Rows that only imports write."""

    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a command imports."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


@admin.register(ImportJob)
class ImportJobAdmin(LookedAt):
    """How far each import has come."""

    counts = ("rows_total", "rows_done", "created", "updated", "unchanged", "rejected")
    list_display = ("id", "tenant", "kind", "file_name", "batch", *counts, "started_at", "finished_at")
    list_filter = ("tenant", "kind")
    list_select_related = ("tenant",)
    search_fields = ("batch", "file_name")


@admin.register(ImportedRow)
class ImportedRowAdmin(LookedAt):
    """Found by their import."""

    list_display = ("id", "job", "number", "line", "outcome", "record", "problems")
    list_select_related = ("job",)
    raw_id_fields = ("job",)
    search_fields = ("=job__id",)
