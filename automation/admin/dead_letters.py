"""What failed for good and waits for a person."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.asking import PaceForm, ask, ask_why
from automation.admin.base import BY_TENANT, ReadOnlyAdmin, act, by_number, by_word, pretty
from automation.core.states import BULK_STATES, Reason
from automation.engine.operate import bulk, dead_letters, fitting
from automation.models import BulkJob, DeadLetter


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


def _start_alike(given: dict[str, Any], letter_id: int) -> None:
    """A job for all open dead letters of the same rule, step, reason and error."""
    how = {**given, "verb": given["verb"] or "retry"}
    bulk.start(**fitting.like(letter_id), **how)


@admin.register(BulkJob)
class BulkJobAdmin(ReadOnlyAdmin):
    """How far jobs on many dead letters have come; may be ended."""

    list_display = (
        *("id", "tenant", "verb", "filters", "rate", "state", "let_out", "refused", "failed_again"),
        *("most", "stop_after", "actor", "created_at", "ended_at"),
    )
    list_filter = (BY_TENANT, by_word("state", _("state"), BULK_STATES))
    list_select_related = ("tenant",)
    actions = ("cancel",)

    @admin.display(description=_("put in line"), ordering="done")
    def let_out(self, job: BulkJob) -> int:
        """How many were let out; whether they were tried yet, `automation_bulk status` tells."""
        return job.done

    @admin.action(description=_("End the chosen jobs"), permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[BulkJob]) -> HttpResponse | None:
        """What they have put into the line and nobody has begun goes back."""
        return ask_why(
            self, request, rows, bulk.cancel,
            title=str(_("End the jobs")), action="cancel", done=str(_("Jobs ended: %d.")),
        )  # fmt: skip


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
    actions = ("retry", "retry_as_new", "discard", "retry_alike")

    @admin.action(description=_("Retry: the runs go on at their dead steps"), permissions=["operate"])
    def retry(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> None:
        """Under the same keys: a receiver that has seen one takes it for the same."""
        act(request, rows, dead_letters.retry, done=str(_("Tried again: %d.")))

    @admin.action(description=_("Send again as new: receivers take it for another effect"), permissions=["operate"])
    def retry_as_new(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Under new keys."""
        return ask_why(
            self, request, rows, partial(dead_letters.retry, as_new=True),
            title=str(_("Send again as new")), action="retry_as_new", done=str(_("Sent again as new: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Give up: the runs stay failed"), permissions=["operate"])
    def discard(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Nothing is tried again."""
        return ask_why(
            self, request, rows, dead_letters.discard,
            title=str(_("Give up")), action="discard", done=str(_("Given up: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Retry or give up all cases of the chosen errors at a pace"), permissions=["operate"])
    def retry_alike(self, request: HttpRequest, rows: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Jobs of the workers, one for each error."""
        return ask(
            self, request, rows, PaceForm, title=str(_("Work off at a pace")), action="retry_alike",
            verb=lambda given: partial(_start_alike, given), done=str(_("Jobs begun: %d.")),
        )  # fmt: skip

    @admin.display(description=_("context"))
    def context(self, letter: DeadLetter) -> SafeString:
        """Everything that was known when it failed."""
        return pretty(letter.snapshot)
