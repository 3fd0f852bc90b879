"""What people were told."""

from django.contrib import admin

from automation.admin.base import BY_TENANT, ReadOnlyAdmin
from automation.models import Notice


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """Found by its number, or by its tenant."""

    list_display = ("id", "tenant", "kind", "title", "period", "cases", "recipients", "created_at", "sent_at")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant",)
