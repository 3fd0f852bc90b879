"""Runs, their steps and every attempt."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.asking import CompleteForm, ReasonForm, ReplayForm, ask, ask_why
from automation.admin.base import BY_TENANT, COUNTED, ReadOnlyAdmin, act, by_number, by_text, by_word, rows_link
from automation.core.states import ATTEMPT_OUTCOMES, RUN_STATES, STEP_STATES
from automation.engine.operate import runs, steps
from automation.engine.operate.leaving import left_behind
from automation.engine.operate.replay import replay
from automation.engine.operate.runs import Cancelled
from automation.engine.operate.waking import wake
from automation.engine.stuck import run_ids
from automation.engine.trace import trace
from automation.models import Attempt, DeadLetter, Run, StepExecution
from tenants.context import acting_for
from tenants.validators import row_number


class StuckFilter(SimpleListFilter):
    """Runs that don't get on: of the tenant that the list is narrowed to, or of all."""

    title = _("stuck")
    parameter_name = "stuck"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Those that nothing wakes, or that have been due for five minutes."""
        return [("yes", _("Stuck ones"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By their numbers: the detector looks at more than the runs' own rows."""
        if self.value() != "yes":
            return queryset
        return queryset.filter(pk__in=run_ids(row_number(request.GET.get("tenant__id__exact", "")), limit=COUNTED))


def _cancel(run_id: int, reason: str) -> bool:
    """Whether there was something to cancel yet."""
    return runs.cancel(run_id, reason) != Cancelled()


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Found by its number or that of its record; may be cancelled, paused, resumed, replayed or woken."""

    found_by = ("id", "record")
    list_display = ("id", "tenant", "rule", "state", "reason", "model", "record", "depth", "created_at", "ended_at")
    list_filter = (
        BY_TENANT,
        StuckFilter,
        by_word("state", _("state"), RUN_STATES),
        by_number("rule__id__exact", _("rule (number)")),
        by_number("event__id__exact", _("event (number)")),
        by_text("event__batch", _("batch of an import")),
    )
    list_select_related = ("tenant", "rule")
    readonly_fields = ("explained", "left", "rows")
    actions = ("cancel", "pause", "resume", "replay", "wake")

    @admin.action(description=_("Cancel the chosen runs"), permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Run]) -> HttpResponse | None:
        """Ends them, or asks the workers that are on them to."""
        return ask_why(
            self, request, rows, _cancel,
            title=str(_("Cancel the runs")), action="cancel", done=str(_("Runs cancelled: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Pause the chosen runs"), permissions=["operate"])
    def pause(self, request: HttpRequest, rows: QuerySet[Run]) -> HttpResponse | None:
        """Holds their timers; a step under way ends, and nothing follows it."""
        return ask(
            self, request, rows, ReasonForm, title=str(_("Pause the runs")), action="pause",
            verb=lambda given: partial(runs.pause, **given), done=str(_("Runs paused: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Let the chosen runs go on"), permissions=["operate"])
    def resume(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """What fell due meanwhile is done now."""
        act(request, rows, runs.resume, done=str(_("Runs that go on: %d.")))

    @admin.action(description=_("Replay the chosen runs from a step"), permissions=["operate"])
    def replay(self, request: HttpRequest, rows: QuerySet[Run]) -> HttpResponse | None:
        """New runs, into which the outcomes before that step are copied."""
        return ask(
            self, request, rows, ReplayForm, title=str(_("Replay the runs")), action="replay",
            verb=lambda given: partial(replay, **given), done=str(_("Runs replayed: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Wake the chosen runs, which nothing wakes any more"), permissions=["operate"])
    def wake(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """Gives them the timer that was lost."""
        act(request, rows, wake, done=str(_("Runs woken: %d.")))

    @admin.display(description=_("if it is cancelled"))
    def left(self, run: Run) -> SafeString:
        """What cancelling it would leave behind."""
        with acting_for(run.tenant_id):
            found = left_behind(run.pk)
        if found.ended:
            return format_html("{}", _("It has ended."))
        named = (
            (_("stays done"), found.done),
            (_("may still take effect"), found.under_way),
            (_("nobody knows"), found.uncertain),
            (_("never happens"), found.never),
        )
        return format_html_join("", "<div>{}: {}</div>", ((word, ", ".join(paths)) for word, paths in named if paths))

    @admin.display(description=_("what happened"))
    def explained(self, run: Run) -> SafeString:
        """What it waits for, and what became of each step."""
        with acting_for(run.tenant_id):
            found = trace(run.pk)
        lines = [(found.waiting,)] if found.waiting else []
        if run.forked_from_run_id is not None:
            origin = {"run": run.forked_from_run_id, "step": run.forked_from_step}
            lines.append((_("Replays run %(run)s from the step %(step)s; what came before it was copied.") % origin,))
        lines += [(_("Replayed as run %s.") % replay_id,) for replay_id in found.replays]
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
    """Found by its number, or by its run; may be completed by hand, or skipped."""

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
    actions = ("complete", "skip")

    @admin.action(description=_("Complete the chosen steps by hand"), permissions=["operate"])
    def complete(self, request: HttpRequest, rows: QuerySet[StepExecution]) -> HttpResponse | None:
        """Says that they were done, with what they put out; their runs go on."""
        return ask(
            self, request, rows, CompleteForm, title=str(_("Complete by hand")), action="complete",
            verb=lambda given: partial(steps.complete, **given), done=str(_("Steps completed: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Skip the chosen steps"), permissions=["operate"])
    def skip(self, request: HttpRequest, rows: QuerySet[StepExecution]) -> HttpResponse | None:
        """Leaves them out; their runs go on."""
        return ask(
            self, request, rows, ReasonForm, title=str(_("Skip the steps")), action="skip",
            verb=lambda given: partial(steps.skip, **given), done=str(_("Steps skipped: %d.")),
        )  # fmt: skip

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
