"""Every pause that was ever made."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_word
from automation.models import Pause
from automation.models.pauses import PAUSE_SCOPES


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Tenants are paused and resumed on their own page, rules in their list."""

    list_display = (
        "id",
        "scope",
        "tenant",
        "subject_id",
        "level",
        "reason",
        "actor",
        "since",
        "until",
        "ended_at",
        "ended_by",
    )
    list_filter = (BY_TENANT, by_word("scope", _("scope"), PAUSE_SCOPES))
    list_select_related = ("tenant",)
