"""Every pause that was ever made with what it held; the installation's is begun here, and every open one ended."""

from contextlib import nullcontext
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_word
from automation.admin.pausing import PauseForm, asked, page, resume_form
from automation.engine.operate import pause
from automation.models import Drip, Pause
from automation.models.pauses import PAUSE_SCOPES
from tenants.context import acting_for

NOTHING = "-"
LINE = mark_safe("<br>")


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Tenants are paused on their own page, rules and connections in their lists."""

    change_list_template = "admin/automation/pauses.html"
    list_display = (
        *("id", "scope", "tenant", "subject_id", "level", "reason", "actor", "since", "until", "ended_at", "ended_by"),
        *("keep", "rate", "dropped_events", "dropped_runs"),
    )
    list_filter = (BY_TENANT, by_word("scope", _("scope"), PAUSE_SCOPES))
    list_select_related = ("tenant",)
    readonly_fields = ("held_now", "let_out", "resume_link")

    def get_urls(self) -> list[URLPattern]:
        """The pages of the verbs, before the admin's own."""
        wrap = self.admin_site.admin_view
        return [
            path("installation/", wrap(self.installation_view), name="automation_pause_installation"),
            path("<int:pause_id>/resume/", wrap(self.resume_view), name="automation_pause_resume"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the switch of the installation for superusers."""
        found = pause.find_pause("installation")
        shown = {"installation": found, "may_stop_all": request.user.is_superuser}
        return super().changelist_view(request, {**(extra_context or {}), **shown})

    def installation_view(self, request: HttpRequest) -> HttpResponse:
        """Says what a pause of the whole installation holds, asks how much, and pauses."""
        if not request.user.is_superuser:
            raise PermissionDenied
        form = PauseForm(request.POST if request.method == "POST" else None, without_cancel=True)
        if asked(
            form,
            request,
            lambda: pause.pause_installation(**form.cleaned_data),
            done=str(_("Every tenant is being paused.")),
        ):
            return HttpResponseRedirect(reverse("admin:automation_pause_changelist"))
        title = _("Pause the whole installation")
        shown = {"form": form, "status": pause.installation_status(), "verb": _("Pause"), "danger": True}
        return page(self, request, "admin/automation/pause_form.html", title=title, **shown)

    def resume_view(self, request: HttpRequest, pause_id: int) -> HttpResponse:
        """Says what an open pause holds, asks what becomes of it, and ends it."""
        found = Pause.objects.filter(pk=pause_id, ended_at=None).first()
        if found is None:
            raise Http404
        if not (request.user.is_superuser or (found.tenant_id and self.has_operate_permission(request))):
            raise PermissionDenied
        form = resume_form(request)
        with acting_for(found.tenant_id) if found.tenant_id else nullcontext():
            if asked(form, request, lambda: _end(found, form.choice()), done=str(_("The pause has ended."))):
                return HttpResponseRedirect(reverse("admin:automation_pause_change", args=[found.pk]))
            shown = {"form": form, "original": found, "verb": _("Resume"), **_shown(found)}
            return page(self, request, "admin/automation/pause_form.html", title=_("Resume"), **shown)

    @admin.display(description=_("held now"))
    def held_now(self, found: Pause) -> SafeString | str:
        """Of an open pause: the steps by rule; of a tenant's the events by what happened besides."""
        if found.tenant_id is None or found.ended_at is not None:
            return NOTHING
        with acting_for(found.tenant_id):
            lines = [f"{one.steps} · {one.rule_name} ({one.oldest:%Y-%m-%d %H:%M:%S})" for one in _held(found)]
            lines += [
                f"{one.events} · {one.model} {one.change or one.name} ({one.source}, {one.oldest:%Y-%m-%d %H:%M:%S})"
                for one in (pause.kept_by_kind() if found.scope == "tenant" else [])
            ]
        return format_html_join(LINE, "{}", ((line,) for line in lines)) if lines else str(_("nothing"))

    @admin.display(description=_("let out afterwards"))
    def let_out(self, found: Pause) -> SafeString | str:
        """The drips that its end has opened, and how far they are."""
        drips = Drip.objects.filter(pause=found, next_at__isnull=False).select_related("tenant").order_by("id")[:50]
        lines = [f"{one.tenant}: {one.released} {_pace(one)}, {one.ended_at or _('under way')}" for one in drips]
        return format_html_join(LINE, "{}", ((line,) for line in lines)) if lines else NOTHING

    @admin.display(description=_("resume"))
    def resume_link(self, found: Pause) -> SafeString | str:
        """Where an open pause is ended."""
        if found.ended_at is not None:
            return NOTHING
        address = reverse("admin:automation_pause_resume", args=[found.pk])
        return format_html('<a href="{}">{}</a>', address, _("Resume…"))


def _pace(drip: Drip) -> str:
    return str(_("at %d a minute") % drip.rate if drip.rate else _("all at once"))


def _held(found: Pause) -> list[pause.HeldOfRule]:
    """The steps that a tenant's open pause holds, or that of one of its parts; acting for the tenant already."""
    return pause.held_by_rule() if found.scope == "tenant" else pause.held_by(found.scope, found.subject_id or 0)


def _shown(found: Pause) -> dict[str, Any]:
    """What the page that ends a pause says of it: a tenant's or the installation's state, or what a part holds."""
    if found.scope == "installation":
        return {"status": pause.installation_status()}
    return {"status": pause.status()} if found.scope == "tenant" else {"part": True, "held": _held(found)}


def _end(found: Pause, choice: pause.Choice) -> None:
    """Ends a pause of any scope, acting for its tenant already."""
    if found.scope == "installation":
        pause.resume_installation(choice)
    elif found.scope == "tenant":
        pause.resume(choice)
    elif found.scope == "rule":
        pause.resume_rule(found.subject_id or 0, choice)
    else:
        pause.resume_connection(found.subject_id or 0, choice)
