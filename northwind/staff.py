"""Admin classes for the host's records: chosen links stay inside the record's tenant, and rules start by hand."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import models, transaction
from django.forms import ModelChoiceField, Textarea, TextInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_number, rows_link
from automation.extend import Refused, manual_rules_for, run_by_hand
from tenants.audited import AuditedAdmin, OwnedInline
from tenants.models import Membership, Tenant, TenantOwned
from tenants.validators import row_number

__all__ = ["BY_TENANT", "OwnLinks", "PartInline", "ReadOnlyAdmin", "RecordAdmin", "by_number", "rows_link"]

STARTED_AT_ONCE = 500  # records that a rule is started on by one click
LAST_ROWS = 20  # parts of a record that its page shows
SHOWN_BY: dict[Any, tuple[str, ...]] = {Membership: ("user",)}  # what the name of such a row is read from
OFFERED = 100  # rows that a link offers without JavaScript; with it, all can be looked for


class OwnAutocomplete(AutocompleteSelect):
    """Looks only among one tenant's rows; without JavaScript it is a list of the first `offered` of them."""

    def __init__(self, field: Any, admin_site: Any, *, tenant_id: int, offered: int = 0) -> None:
        super().__init__(field, admin_site)
        self.tenant_id = tenant_id
        self.offered = offered

    def get_url(self) -> str:
        """The address that answers what was typed."""
        return f"{super().get_url()}?tenant={self.tenant_id}"

    def optgroups(self, name: str, value: Any, attrs: Any = None) -> Any:
        """The row that is chosen, and others that can be."""
        groups = super().optgroups(name, value, attrs)
        options: list[Any] = groups[0][1]
        shown = {str(option["value"]) for option in options}
        field: Any = self.choices.field
        for row in field.queryset[: self.offered] if self.offered else ():
            if str(row.pk) not in shown:
                label = field.label_from_instance(row)
                options.append(self.create_option(name, row.pk, label, False, len(options)))
        return groups


class OwnLinks(BaseModelAdmin[Any]):
    """Links of a record lead only to rows of its tenant: that is what is offered, and what is accepted."""

    offered: ClassVar[int] = 0

    def formfield_for_foreignkey(
        self, db_field: "models.ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> "ModelChoiceField[Any] | None":
        """Limit the field to the page's tenant."""
        model: Any = db_field.remote_field.model
        if issubclass(model, TenantOwned):
            tenant_id = self._tenant_of_page(request)
            rows = model._default_manager.select_related(*SHOWN_BY.get(model, ()))
            kwargs["queryset"] = rows.none() if tenant_id is None else rows.filter(tenant_id=tenant_id)
            if tenant_id is not None:
                kwargs["widget"] = OwnAutocomplete(db_field, self.admin_site, tenant_id=tenant_id, offered=self.offered)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def _tenant_of_page(self, request: HttpRequest) -> int | None:
        """The tenant of the record that the page shows, or that was chosen for a new one; None before that."""
        if not hasattr(request, "tenant_of_page"):
            shown: Any = getattr(self, "parent_model", self.model)
            object_id = getattr(request.resolver_match, "kwargs", {}).get("object_id")
            if object_id is None:
                found = _chosen(request)
            else:
                found = shown._default_manager.filter(pk=unquote(object_id)).values_list("tenant_id", flat=True).first()
            request.tenant_of_page = found  # type: ignore[attr-defined]
        tenant_id: int | None = request.tenant_of_page  # type: ignore[attr-defined]
        return tenant_id


def _chosen(request: HttpRequest) -> int | None:
    """The open tenant that a form, or else its address, names; None where there is none such."""
    named = row_number(request.POST.get("tenant") or request.GET.get("tenant") or "") or 0
    return Tenant.objects.filter(pk=named, closed_at=None).values_list("pk", flat=True).first()


class PartInline(OwnLinks, OwnedInline):
    """Parts of a record below it: the last of them, however many there are."""

    show_change_link = False
    # A row of them fits on a page of 1280 pixels beside the admin's own bar.
    formfield_overrides: ClassVar[Any] = {
        models.TextField: {"widget": Textarea(attrs={"rows": 3, "cols": 22})},
        models.CharField: {"widget": TextInput(attrs={"size": 12})},
    }

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
    """Records of tenants. For a new one its tenant is chosen first; then the page offers all of its fields."""

    offered = OFFERED
    list_per_page = 50
    show_full_result_count = False
    list_select_related: ClassVar[Any] = ("tenant",)
    actions: Any = ("start_rule",)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Ask for the tenant, then for the record."""
        if self.has_add_permission(request) and self._tenant_of_page(request) is None:
            return self._ask_for_tenant(request)
        return super().add_view(request, form_url, extra_context)

    def _ask_for_tenant(self, request: HttpRequest) -> HttpResponse:
        refused = request.method == "POST" or "tenant" in request.GET
        context = {
            **self.admin_site.each_context(request),
            "title": _("Add %s") % self.opts.verbose_name,
            "opts": self.opts,
            "tenants": Tenant.objects.filter(closed_at=None),
            "kept": [one for one in request.GET.items() if one[0] != "tenant"],
            "refused": refused,
            "is_popup": "_popup" in request.GET,
        }
        return TemplateResponse(request, "admin/choose_tenant.html", context, status=422 if refused else 200)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Without what only a record that is there has."""
        fields = super().get_fields(request, obj)
        return fields if obj is not None else [name for name in fields if name not in self.readonly_fields]

    def formfield_for_foreignkey(
        self, db_field: "models.ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        """The tenant that was chosen is the only one: the other fields are for it."""
        if db_field.name == "tenant":
            kwargs["queryset"] = Tenant.objects.filter(pk=self._tenant_of_page(request) or 0)
            kwargs["empty_label"] = None
            kwargs["help_text"] = format_html('<a href="{}">{}</a>', request.path, _("Choose another tenant"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: "models.Field[Any, Any]", request: HttpRequest, **kwargs: Any) -> Any:
        """The tenant stands without the buttons that would make or change one."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "tenant" and field is not None:
            field.widget = getattr(field.widget, "widget", field.widget)
        return field

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """None while the record isn't there yet."""
        return [] if obj is None else super().get_inlines(request, obj)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Go on to the record's own page."""
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        if "_addanother" in request.POST:
            return HttpResponseRedirect(f"{request.path}?tenant={obj.tenant_id}")
        if "_popup" in request.POST or not self.has_change_permission(request, obj):
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
