"""Own addresses: staff say at which addresses a tenant receives mail itself."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, CappedPaginator
from automation.engine import addresses
from automation.engine.operate import Refused
from automation.models import OwnAddress
from tenants.audited import AuditedAdmin


class OwnAddressForm(forms.ModelForm[OwnAddress]):
    """An address, with the revision that was read."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = OwnAddress
        fields = ("tenant", "address", "answers_automatic", "revision")

    def clean_address(self) -> str:
        """Addresses are kept in lower case."""
        address: str = self.cleaned_data["address"]
        return address.strip().lower()

    def clean(self) -> dict[str, Any] | None:
        """Refuse a form that was filled on an older revision, and an address that the tenant has."""
        values = super().clean() or self.cleaned_data
        known = OwnAddress.objects.exclude(pk=self.instance.pk)
        if OwnAddress.objects.filter(pk=self.instance.pk).exclude(revision=values.get("revision") or 0).exists():
            raise ValidationError(_("Someone else has changed this address meanwhile: load the page again."))
        tenant = values.get("tenant") or self.instance.tenant_id
        if known.filter(tenant=tenant, address=values.get("address")).exists():
            raise ValidationError(_("The tenant has this address already."))
        return values


@admin.register(OwnAddress)
class OwnAddressAdmin(AuditedAdmin):
    """Mail from rules never goes to these addresses, nor to machines that write to them."""

    form = OwnAddressForm
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_display = ("address", "tenant", "answers_automatic", "revision")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant",)
    ordering = ("tenant_id", "address")
    search_fields = ("address",)
    autocomplete_fields = ("tenant",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """An address stays with its tenant."""
        fields = super().get_readonly_fields(request, obj)
        return [*fields, "tenant"] if obj is not None else [*fields]

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        """Save against the revision that was read."""
        try:
            addresses.save(obj, base_revision=(form.cleaned_data.get("revision") or 0) if change else None)
        except Refused as refusal:  # somebody was faster by a moment
            self.message_user(request, str(refusal), "error")
            return
        names = [name for name in form.changed_data if name != "revision"]
        before = self.shown(form.initial, names) if change else None
        self.note("changed" if change else "added", obj, before=before, after=self.shown(form.cleaned_data, names))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Forget it."""
        self.note("deleted", obj, before={"address": obj.address})
        addresses.delete(obj)
