"""The tenants' page with the automation panel and the pause switch; groups and members followed by the rules."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from automation.admin.base import rows_link
from automation.admin.pausing import PauseForm, asked, resume_form
from automation.admin.references import ReferencedAdmin
from automation.engine.operate import pause
from automation.engine.retention.closing import purged_from
from automation.models import (
    Connection,
    DeadLetter,
    Event,
    Lane,
    Limits,
    Notice,
    Pause,
    Retention,
    Rule,
    Run,
    Timer,
)
from tenants.admin import GroupAdmin, MembershipAdmin, TenantAdmin
from tenants.context import acting_for
from tenants.models import Group, Membership, Tenant

LISTS = (Rule, Run, DeadLetter, Event, Timer, Connection, Pause, Notice, Lane, Limits, Retention)


class TenantAutomationAdmin(TenantAdmin):
    """A tenant as staff see it, with how its automation stands."""

    change_form_template = "admin/automation/tenant.html"

    def get_urls(self) -> list[URLPattern]:
        """The pages of the switch, before the admin's own."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/pause/", wrap(self.pause_view), name="tenants_tenant_pause"),
            path("<path:object_id>/resume/", wrap(self.resume_view), name="tenants_tenant_resume"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a tenant with its panel."""
        tenant = self.get_object(request, object_id)
        panel = self.panel(tenant) if tenant is not None else {}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **panel})

    def panel(self, tenant: Tenant) -> dict[str, Any]:
        """How its automation stands, and where its rows are."""
        with acting_for(tenant.pk):
            status = pause.status()
        links = [
            rows_link(model, str(model._meta.verbose_name_plural).capitalize(), tenant__id__exact=tenant.pk)
            for model in LISTS
        ]
        retention = Retention.objects.filter(tenant=tenant).first()
        goes = purged_from(tenant) if tenant.closed_at else None
        return {"automation": status, "automation_links": links, "retention": retention, "purged_from": goes}

    def pause_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Says what a pause concerns, asks how much, and pauses."""
        tenant = self._tenant(request, object_id)
        form = PauseForm(request.POST if request.method == "POST" else None)
        with acting_for(tenant.pk):
            done = str(_("The automations of %s are being paused.") % tenant)
            if asked(form, request, lambda: pause.pause(**form.cleaned_data), done=done):
                return self._back(tenant)
            shown = {"form": form, "concerned": pause.concerned(), "status": pause.status()}
        return self._page(request, "admin/automation/pause.html", tenant, title=_("Pause the automations"), **shown)

    def resume_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Says what was held, and resumes."""
        tenant = self._tenant(request, object_id)
        form = resume_form(request)
        with acting_for(tenant.pk):
            if pause.open_pause() is None and pause.dripping() is None:
                messages.info(request, _("The automations of %s aren't paused.") % tenant)
                return self._back(tenant)
            done = str(_("The automations of %s run again.") % tenant)
            if asked(form, request, lambda: pause.resume(form.choice()), done=done):
                return self._back(tenant)
            shown = {"form": form, "status": pause.status(), "younger": pause.younger()}
        title = _("Resume the automations")
        return self._page(request, "admin/automation/resume.html", tenant, title=title, **shown)

    def _tenant(self, request: HttpRequest, object_id: str) -> Tenant:
        tenant: Tenant | None = self.get_object(request, object_id)
        if tenant is None:
            raise Http404
        if not self.has_change_permission(request, tenant):
            raise PermissionDenied
        return tenant

    def _page(self, request: HttpRequest, template: str, tenant: Tenant, **shown: Any) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": tenant,
            "now": timezone.now(),
            **shown,
        }
        return TemplateResponse(request, template, context)

    def _back(self, tenant: Tenant) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:tenants_tenant_change", args=[tenant.pk]))


class GroupAutomationAdmin(ReferencedAdmin, GroupAdmin):
    """A group that rules may name."""

    named_as, named_by = "groups", "name"


class MembershipAutomationAdmin(ReferencedAdmin, MembershipAdmin):
    """A member whom rules may name."""

    named_as, named_by = "members", "pk"


for model, page in (
    (Tenant, TenantAutomationAdmin),
    (Group, GroupAutomationAdmin),
    (Membership, MembershipAutomationAdmin),
):
    admin.site.unregister(model)
    admin.site.register(model, page)
