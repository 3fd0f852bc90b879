"""Admin classes for rows of tenants: what they change is audited in the same transaction."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest

from tenants.audit import record
from tenants.validators import row_number

HIDDEN = "…"


class AuditedAdmin(admin.ModelAdmin[Any]):
    """Writes an entry for each row that staff add, change or delete; the tenant of a row is chosen once.

    `audit_hidden` names fields whose values stay out of the audit, such as secrets.
    """

    audit_hidden: tuple[str, ...] = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        """Add the tenant where the row exists already."""
        fields = [str(name) for name in super().get_readonly_fields(request, obj)]
        return (
            [*fields, "tenant"] if obj is not None and hasattr(obj, "tenant_id") and "tenant" not in fields else fields
        )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Look among one tenant's rows only, where the field that asks names its tenant."""
        asked = request.GET.get("tenant")
        if asked is not None and hasattr(self.model, "tenant_id"):
            queryset = queryset.filter(tenant_id=row_number(asked))
        return super().get_search_results(request, queryset, search_term.replace("\x00", ""))

    def save_model(self, request: HttpRequest, obj: Model, form: ModelForm[Any], change: bool) -> None:
        """Save and say what changed."""
        super().save_model(request, obj, form, change)
        before = self.shown(form.initial, form.changed_data) if change else None
        self.note(
            "changed" if change else "added", obj, before=before, after=self.shown(form.cleaned_data, form.changed_data)
        )

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete and say so."""
        self.note("deleted", obj, before={"name": str(obj)})
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete one by one, so that each row has its entry."""
        for row in queryset:
            self.delete_model(request, row)

    def note(self, what: str, row: Model, *, before: Any = None, after: Any = None) -> None:
        """Write the entry of a row, for instance "membership.changed"."""
        record(
            f"{row._meta.model_name}.{what}",
            f"{row._meta.model_name}:{row.pk}",
            tenant_id=self.tenant_of(row),
            before=before,
            after=after,
        )

    def tenant_of(self, row: Model) -> int | None:
        """Return whose audit the row belongs to."""
        return getattr(row, "tenant_id", None)

    def shown(self, values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        """Return the values as JSON has them, the hidden ones masked."""
        return {name: HIDDEN if name in self.audit_hidden else plain(values.get(name)) for name in names}


class OwnedFormSet(BaseInlineFormSet[Any, Any, Any]):
    """Rows below another one belong to its tenant."""

    def _construct_form(self, i: int, **kwargs: Any) -> ModelForm[Any]:
        form: ModelForm[Any] = super()._construct_form(i, **kwargs)  # type: ignore[misc]  # the stubs leave it out
        form.instance.tenant_id = self.instance.tenant_id
        return form


class OwnedInline(admin.TabularInline[Any, Any]):
    """Rows of a tenant, below one of the same tenant."""

    formset = OwnedFormSet
    exclude = ("tenant",)
    extra = 0


def plain(value: Any) -> Any:
    """Return a value of a form as JSON can hold it: rows as their ids, lists of rows as lists of ids."""
    if isinstance(value, Model):
        return value.pk
    if value is None or isinstance(value, str | int | float | bool | list | dict):
        return value
    if hasattr(value, "values_list"):
        return list(value.values_list("pk", flat=True))
    try:
        return DjangoJSONEncoder().default(value)
    except TypeError:
        return str(value)
