"""The hot tables: lanes with their share, limits, timers and workers."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _

from automation.admin.asking import PostponeForm, ask, ask_why
from automation.admin.base import BY_TENANT, CappedPaginator, ReadOnlyAdmin, act, by_number, by_word
from automation.core.states import TIMER_KINDS, TIMER_STATES
from automation.engine import limits
from automation.engine.operate import Refused, timers
from automation.engine.usage import usage
from automation.models import Lane, Limits, Timer, Worker
from tenants.audited import AuditedAdmin

MOST, MOST_DAYS = 2_000_000_000, 36_500


class OfTenantAdmin(AuditedAdmin):
    """A row that a tenant has once: made with it, changed here, never added or deleted."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    ordering = ("tenant_id",)
    list_select_related = ("tenant",)
    search_fields = ("tenant__name", "tenant__slug")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: it comes with the tenant."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody: without it the tenant's events would never be matched."""
        return False


class LaneForm(forms.ModelForm[Lane]):
    """The share: which pool's workers, how many steps at a time, and the weight beside other tenants."""

    max_running = forms.IntegerField(
        min_value=0, max_value=1000, help_text=_("Steps that may run at a time. 0 starts nothing; what runs goes on.")
    )
    weight = forms.IntegerField(min_value=1, max_value=100_000, help_text=_("100 is usual; 200 gets twice as much."))

    class Meta:
        model = Lane
        fields = ("pool", "max_running", "weight")


@admin.register(Lane)
class LaneAdmin(OfTenantAdmin):
    """Pool, cap and weight may be changed; everything else is the engine's."""

    form = LaneForm
    list_display = ("tenant", "pool", "running", "max_running", "weight", "runnable", "paused", "hold_new", "wake_at")
    list_filter = (BY_TENANT, "paused", "hold_new")
    fields = (
        *("tenant", "pool", "max_running", "weight"),
        *("running", "runnable", "paused", "hold_new", "due_hint", "wake_at", "stride_pass", "rules_version"),
    )
    readonly_fields = (
        *("tenant", "running", "runnable", "paused", "hold_new"),
        *("due_hint", "wake_at", "stride_pass", "rules_version"),
    )

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        """Write the share alone: workers change the rest of the row all the time."""
        limits.set_share(obj.tenant_id, pool=obj.pool, max_running=obj.max_running, weight=obj.weight)
        before, after = self.shown(form.initial, form.changed_data), self.shown(form.cleaned_data, form.changed_data)
        self.note("changed", obj, before=before, after=after)


class LimitsForm(forms.ModelForm[Limits]):
    """The limits, with the revision that they were read at."""

    max_depth = forms.IntegerField(min_value=1, max_value=10, help_text=_("Rules that may follow each other."))
    events_kept = forms.IntegerField(
        min_value=0, max_value=MOST, help_text=_("The newest so many keep their facts, whatever their age.")
    )
    rules = forms.IntegerField(min_value=0, max_value=MOST, help_text=_("Rules that the tenant may have."))
    retention_days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, help_text=_("What runs read, sent and were answered is kept for so long.")
    )
    header_days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, help_text=_("Afterwards nothing of a run is left.")
    )
    revision = forms.IntegerField(widget=forms.HiddenInput)

    class Meta:
        model = Limits
        fields = ("max_depth", "events_kept", "rules", "retention_days", "header_days", "revision")

    def clean(self) -> dict[str, Any] | None:
        """Refuse a form that was filled on an older revision, saying what has changed since."""
        values = super().clean() or self.cleaned_data
        present = Limits.objects.get(pk=self.instance.pk)
        if present.revision != values.get("revision"):
            raise ValidationError(limits.moved_on(present, wanted=values))
        return values

    def clean_header_days(self) -> int:
        """Refuse headers that go before the details do."""
        days: int = self.cleaned_data["header_days"]
        if days < (self.cleaned_data.get("retention_days") or 0):
            raise ValidationError(_("Runs are kept at least as long as their details."))
        return days


@admin.register(Limits)
class LimitsAdmin(OfTenantAdmin):
    """What a tenant may use."""

    form = LimitsForm
    list_display = ("tenant", "max_depth", "events_kept", "rules", "retention_days", "header_days", "revision")
    list_filter = (BY_TENANT,)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "tenant",
                    "use",
                    "max_depth",
                    "events_kept",
                    "rules",
                    "retention_days",
                    "header_days",
                    "revision",
                ),
                "description": _(
                    "Admins are told at 80 and at 100 percent: within a minute of a limit that is half used, within "
                    "15 minutes of one that fills up faster, and at once when something is refused."
                ),
            },
        ),
    )
    readonly_fields = ("tenant", "use")

    @admin.display(description=_("use"))
    def use(self, found: Limits) -> str:
        """Each limit with its use."""
        words = _("%(name)s: %(used)d of %(limit)d (%(percent)d %%)")
        rows = (
            words % {"name": use.name, "used": use.used, "limit": use.limit, "percent": use.percent}
            for use in usage(found.tenant_id)
        )
        return format_html_join(mark_safe("<br>"), "{}", ((row,) for row in rows))

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        """Save against the revision that was read."""
        try:
            limits.save_limits(obj, base_revision=form.cleaned_data["revision"])
        except Refused as refusal:
            self.message_user(request, str(refusal), "error")
            return
        before, after = self.shown(form.initial, form.changed_data), self.shown(form.cleaned_data, form.changed_data)
        self.note("changed", obj, before=before, after=after)


@admin.register(Timer)
class TimerAdmin(ReadOnlyAdmin):
    """What is to wake up, and who is on it; what waits may be put off, made due now, or cancelled."""

    list_display = (
        "id",
        "tenant",
        "kind",
        "state",
        "due_at",
        "run_id",
        "step_id",
        "deliveries",
        "lost",
        "worker_id",
        "deadline_at",
    )
    list_filter = (
        BY_TENANT,
        by_word("state", _("state"), TIMER_STATES),
        by_word("kind", _("kind"), TIMER_KINDS),
        by_number("step_id", _("step (number)")),
    )
    list_select_related = ("tenant",)
    actions = ("run_now", "postpone", "cancel")

    @admin.action(description=_("Make the chosen timers due now"), permissions=["operate"])
    def run_now(self, request: HttpRequest, rows: QuerySet[Timer]) -> None:
        """Delays end, retries are tried."""
        act(request, rows, timers.run_now, done=str(_("Timers due now: %d.")))

    @admin.action(description=_("Put the chosen timers off"), permissions=["operate"])
    def postpone(self, request: HttpRequest, rows: QuerySet[Timer]) -> HttpResponse | None:
        """Until a moment."""
        return ask(
            self, request, rows, PostponeForm, title=str(_("Put off")), action="postpone",
            verb=lambda given: partial(timers.postpone, **given), done=str(_("Timers put off: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Cancel what waits for the chosen timers"), permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet[Timer]) -> HttpResponse | None:
        """Their runs end as cancelled."""
        return ask_why(
            self, request, rows, timers.cancel,
            title=str(_("Cancel the runs that wait")), action="cancel", done=str(_("Cancelled: %d.")),
        )  # fmt: skip


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """The pumps that are alive."""

    list_display = ("id", "pool", "host", "pid", "release", "started_at", "beat_at", "expires_at")
    ordering = ("pool",)
    found_by = ("pid",)
    search_fields = ("pid",)
