"""Runs, their steps and every attempt."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, act, by_number, by_text, by_word, rows_link
from automation.core.states import ATTEMPT_OUTCOMES, RUN_STATES, STEP_STATES
from automation.engine.operate import runs
from automation.engine.trace import trace
from automation.models import Attempt, DeadLetter, Run, StepExecution
from tenants.context import acting_for


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Found by its number or that of its record; may be cancelled."""

    found_by = ("id", "record")
    list_display = ("id", "tenant", "rule", "state", "reason", "model", "record", "depth", "created_at", "ended_at")
    list_filter = (
        BY_TENANT,
        by_word("state", _("state"), RUN_STATES),
        by_number("rule__id__exact", _("rule (number)")),
        by_number("event__id__exact", _("event (number)")),
        by_text("event__batch", _("batch of an import")),
    )
    list_select_related = ("tenant", "rule")
    readonly_fields = ("explained", "rows")
    actions = ("cancel",)

    @admin.action(description=_("Cancel the chosen runs"), permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """Ends them, or asks the workers that are on them to."""
        act(request, rows, runs.cancel, done=str(_("Runs cancelled: %d.")))

    @admin.display(description=_("what happened"))
    def explained(self, run: Run) -> SafeString:
        """What it waits for, and what became of each step."""
        with acting_for(run.tenant_id):
            found = trace(run.pk)
        lines = [(found.waiting,)] if found.waiting else []
        lines += [
            (f"{step.path}: {step.state} {step.reason} ({len(step.attempts)})".replace("  ", " "),)
            for step in found.steps
        ]
        return format_html_join("", "<div>{}</div>", lines)

    @admin.display(description=_("rows"))
    def rows(self, run: Run) -> SafeString:
        """Where to find its steps and dead letters."""
        links = (
            rows_link(StepExecution, str(_("Steps")), run__id__exact=run.pk),
            rows_link(DeadLetter, str(_("Dead letters")), run__id__exact=run.pk),
        )
        return format_html_join(" · ", "{}", ((link,) for link in links))


@admin.register(StepExecution)
class StepExecutionAdmin(ReadOnlyAdmin):
    """Found by its number, or by its run."""

    heavy = ("input", "output")
    list_display = (
        "id",
        "tenant",
        "run",
        "path",
        "kind",
        "action",
        "state",
        "reason",
        "attempts",
        "effect_state",
        "ended_at",
    )
    list_filter = (
        BY_TENANT,
        by_word("state", _("state"), STEP_STATES),
        by_number("run__id__exact", _("run (number)")),
    )
    list_select_related = ("tenant", "run")
    readonly_fields = ("tries",)

    @admin.display(description=_("attempts"))
    def tries(self, step: StepExecution) -> SafeString:
        """Where to find its attempts."""
        return rows_link(Attempt, str(_("Attempts")), step__id__exact=step.pk)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Found by its number, or by its step."""

    heavy = ("request", "answer", "step__input", "step__output")
    list_display = ("id", "tenant", "step", "number", "outcome", "worker_id", "started_at", "finished_at")
    list_filter = (
        BY_TENANT,
        by_word("outcome", _("outcome"), [word for word in ATTEMPT_OUTCOMES if word]),
        by_number("step__id__exact", _("step (number)")),
    )
    list_select_related = ("tenant", "step")
