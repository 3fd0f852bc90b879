"""What people were told."""

from datetime import datetime

from django.contrib import admin
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from automation.admin.base import BY_TENANT, ReadOnlyAdmin
from automation.models import Notice


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """Found by its number, or by its tenant."""

    list_display = ("id", "tenant", "kind", "title", "period", "cases", "recipients", "created_at", "sent")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant",)

    @admin.display(description=gettext_lazy("sent"))
    def sent(self, notice: Notice) -> str:
        """When to all of them, or for whom it was given up, when and why; else that it is still to be sent."""
        if notice.sent_at is not None:
            return _when(notice.sent_at)
        lost = notice.not_told
        if notice.given_up_at is None and not lost:
            return _("not sent yet") if notice.is_waiting else _("to nobody")
        moment = _when(notice.given_up_at) if notice.given_up_at else ""
        who = _("for %s") % ", ".join(lost) if lost else ""
        told = " ".join(filter(None, (_("given up"), who, moment)))
        return ": ".join(filter(None, (told, notice.error)))


def _when(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "DATETIME_FORMAT")
