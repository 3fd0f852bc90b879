"""What failed for good and waits for a person."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, act, by_number, by_word, pretty
from automation.core.states import Reason
from automation.engine.operate import dead_letters
from automation.models import DeadLetter


class Open(SimpleListFilter):
    """Open ones, unless all are asked for."""

    title = _("resolved")
    parameter_name = "resolved"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Beside the open ones, which are shown first."""
        return [("yes", _("Resolved ones too"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those that wait, or all."""
        return queryset if self.value() == "yes" else queryset.filter(resolved_at=None)


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """May be retried, retried as another effect, or given up."""

    heavy = ("snapshot", "step__input", "step__output")
    list_display = ("id", "tenant", "run", "step", "reason", "error", "opened_at", "resolution", "actor")
    list_filter = (
        Open,
        BY_TENANT,
        by_word("reason", _("reason"), [str(reason) for reason in Reason]),
        by_number("run__id__exact", _("run (number)")),
    )
    list_select_related = ("tenant", "run", "step")
    exclude = ("snapshot",)
    readonly_fields = ("context",)
    actions = ("retry", "retry_as_new", "discard")

    @admin.action(description=_("Retry: the runs go on at their dead steps"), permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> None:
        """Under the same keys: a receiver that has seen one takes it for the same."""
        act(request, rows, dead_letters.retry, done=str(_("Tried again: %d.")))

    @admin.action(description=_("Send again as new: receivers take it for another effect"), permissions=["operate"])
    def retry_as_new(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> None:
        """Under new keys."""
        act(request, rows, partial(dead_letters.retry, as_new=True), done=str(_("Sent again as new: %d.")))

    @admin.action(description=_("Give up: the runs stay failed"), permissions=["operate"])
    def discard(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> None:
        """Nothing is tried again."""
        act(request, rows, dead_letters.discard, done=str(_("Given up: %d.")))

    @admin.display(description=_("context"))
    def context(self, letter: DeadLetter) -> SafeString:
        """Everything that was known when it failed."""
        return pretty(letter.snapshot)
