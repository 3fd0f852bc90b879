"""Admin classes for the host's records: chosen links stay inside the record's tenant, and rules start by hand."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import models, transaction
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_number, rows_link
from automation.extend import Refused, manual_rules_for, run_by_hand
from tenants.audited import AuditedAdmin, OwnedInline
from tenants.models import TenantOwned

__all__ = ["BY_TENANT", "OwnLinks", "PartInline", "ReadOnlyAdmin", "RecordAdmin", "by_number", "rows_link"]

STARTED_AT_ONCE = 500  # records that a rule is started on by one click
LAST_ROWS = 20  # parts of a record that its page shows


class OwnAutocomplete(AutocompleteSelect):
    """Looks only among one tenant's rows."""

    def __init__(self, field: Any, admin_site: Any, *, tenant_id: int) -> None:
        super().__init__(field, admin_site)
        self.tenant_id = tenant_id

    def get_url(self) -> str:
        """The address that answers what was typed."""
        return f"{super().get_url()}?tenant={self.tenant_id}"


class OwnLinks(BaseModelAdmin[Any]):
    """Links of a record lead only to rows of its tenant: that is what is offered, and what is accepted."""

    def formfield_for_foreignkey(
        self, db_field: "models.ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelChoiceField[Any] | None":
        """Limit the field to the page's tenant."""
        model: Any = db_field.remote_field.model
        if issubclass(model, TenantOwned):
            tenant_id = self._tenant_of_page(request)
            rows = model._default_manager
            kwargs["queryset"] = rows.none() if tenant_id is None else rows.filter(tenant_id=tenant_id)
            if tenant_id is not None:
                kwargs["widget"] = OwnAutocomplete(db_field, self.admin_site, tenant_id=tenant_id)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def _tenant_of_page(self, request: HttpRequest) -> int | None:
        """The tenant of the record that the page shows; None where one is being added."""
        if not hasattr(request, "tenant_of_page"):
            shown: Any = getattr(self, "parent_model", self.model)
            object_id = getattr(request.resolver_match, "kwargs", {}).get("object_id")
            rows = shown._default_manager.filter(pk=unquote(object_id)) if object_id else shown._default_manager.none()
            request.tenant_of_page = rows.values_list("tenant_id", flat=True).first()  # type: ignore[attr-defined]
        tenant_id: int | None = request.tenant_of_page  # type: ignore[attr-defined]
        return tenant_id


class PartInline(OwnLinks, OwnedInline):
    """Parts of a record below it: the last of them, however many there are."""

    show_change_link = False

    def get_queryset(self, request: HttpRequest) -> Any:
        """The last rows of the record that the page shows."""
        rows = super().get_queryset(request)
        object_id = getattr(request.resolver_match, "kwargs", {}).get("object_id")
        if object_id is None:
            return rows.none()
        link = next(one for one in self.model._meta.concrete_fields if one.related_model is self.parent_model)
        mine = rows.filter(**{link.name: unquote(object_id)}).order_by("-pk").values_list("pk", flat=True)
        return rows.filter(pk__in=list(mine[:LAST_ROWS]))


class RecordAdmin(OwnLinks, AuditedAdmin):
    """Records of tenants. A new one gets its tenant and its own values first; then the page offers links."""

    new_fields: tuple[str, ...] = ("tenant",)
    list_per_page = 50
    show_full_result_count = False
    list_select_related: ClassVar[Any] = ("tenant",)
    actions: Any = ("start_rule",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Fewer while the tenant isn't chosen yet."""
        return self.new_fields if obj is None else super().get_fields(request, obj)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """None while the record isn't there yet."""
        return [] if obj is None else super().get_inlines(request, obj)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Go on to the record's own page."""
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        if "_addanother" in request.POST or "_popup" in request.POST or not self.has_change_permission(request, obj):
            return response
        meta = self.model._meta
        return HttpResponseRedirect(reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[obj.pk]))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete all at once, each with its entry."""
        with transaction.atomic():
            for row in queryset:
                self.note("deleted", row, before={"name": str(row)})
            queryset.delete()

    @admin.action(description=gettext_lazy("Start a rule…"))
    def start_rule(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Ask which of the tenant's rules, then start it on each record chosen."""
        records = list(queryset[: STARTED_AT_ONCE + 1])
        if len(records) > STARTED_AT_ONCE:
            text = _("Choose at most %(count)s records.") % {"count": STARTED_AT_ONCE}
            self.message_user(request, text, messages.ERROR)
            return None
        if len({record.tenant_id for record in records}) != 1:
            self.message_user(request, _("Choose records of one tenant: rules belong to one."), messages.ERROR)
            return None
        if "rule" in request.POST:
            self._start(request, records, request.POST["rule"])
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Start a rule"),
            "opts": self.model._meta,
            "records": records,
            "rules": manual_rules_for(records[0]),
            "checkbox": helpers.ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/start_rule.html", context)

    def _start(self, request: HttpRequest, records: list[Any], chosen: str) -> None:
        rule = {str(one.pk): one for one in manual_rules_for(records[0])}.get(chosen)
        if rule is None:
            self.message_user(request, _("This rule can't be started any more."), messages.ERROR)
            return
        try:
            with transaction.atomic():
                for record in records:
                    run_by_hand(rule.pk, record)
        except Refused as refused:
            self.message_user(request, str(refused), messages.ERROR)
            return
        started = _("“%(rule)s” was started; records: %(count)s.") % {"rule": rule.name, "count": len(records)}
        self.message_user(request, started, messages.SUCCESS)
