"""Connections: staff keep endpoints and secrets for tenants; a secret that was typed is never shown again."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from automation.admin.asking import ask_why
from automation.admin.base import BY_TENANT, CappedPaginator, act, by_word
from automation.admin.references import NamedByRules, say_off
from automation.core.breaker import BREAKER_STATES
from automation.engine import connections
from automation.engine.operate import Refused, pause
from automation.models import Connection
from tenants.audited import AuditedAdmin


class ConnectionForm(forms.ModelForm[Connection]):
    """A connection, with a secret that is only ever written, and the revision that was read."""

    kind = forms.ChoiceField(label=_("Kind"))
    endpoint = forms.CharField(label=_("Endpoint"), max_length=500, widget=forms.TextInput(attrs={"size": 60}))
    secret = forms.CharField(
        label=_("Secret"),
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "size": 60}),
        help_text=_("Never shown again. Leave it empty to keep the present one."),
    )
    remove_secret = forms.BooleanField(label=_("Remove the secret"), required=False)
    concurrency = forms.IntegerField(
        label=_("Concurrency"),
        required=False,
        min_value=1,
        max_value=1000,
        help_text=_("So many calls at a time at most. Empty: as many as the tenant's lane allows."),
    )
    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Connection
        fields = ("tenant", "name", "kind", "endpoint", "settings", "allowed_hosts", "concurrency", "revision")
        labels: ClassVar[Any] = {"allowed_hosts": _("Allowed hosts")}
        help_texts: ClassVar[Any] = {
            "settings": _(
                'What the kind needs beside the secret, as JSON, such as {"from": "+4930123456"}; {} for nothing.'
            ),
            "allowed_hosts": _(
                "The hosts that may be called, with commas between them; .example.com means all below example.com. "
                "Empty: the endpoint's host alone."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = self.fields.get("kind")
        if isinstance(kind, forms.ChoiceField):
            kind.choices = [(one, one) for one in connections.kinds()]

    def clean_settings(self) -> dict[str, Any]:
        """Settings are names with values."""
        settings = self.cleaned_data["settings"]
        if not isinstance(settings, dict):
            raise ValidationError(_('Settings are a JSON object, such as {"from": "+4930123456"}.'))
        return settings

    def clean(self) -> dict[str, Any] | None:
        """Refuse a form that was filled on an older revision, saying what has changed since."""
        values = super().clean() or self.cleaned_data
        self._refuse_endpoint(values)
        if self.instance.pk is not None:
            changed = connections.moved_on(self.instance.pk, base_revision=values.get("revision"), wanted=values)
            if changed is not None:
                raise ValidationError(changed)
        return values

    def _refuse_endpoint(self, values: dict[str, Any]) -> None:
        """Refuse what rules may not call."""
        if values.get("endpoint"):
            allowed = Connection(allowed_hosts=values.get("allowed_hosts") or "").hosts()
            problem = connections.endpoint_problem(values["endpoint"], allowed)
            if problem is not None:
                self.add_error("endpoint", problem)


@admin.register(Connection)
class ConnectionAdmin(NamedByRules, AuditedAdmin):
    """Name and kind are chosen once: rules know a connection by them."""

    form = ConnectionForm
    audit_hidden = ("secret",)
    named_as, named_by = "connections", "name"
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_display = ("name", "tenant", "kind", "endpoint", "breaker", "has_secret", "revision", "changed_at")
    list_filter = (BY_TENANT, by_word("breaker", _("breaker"), BREAKER_STATES))
    list_select_related = ("tenant",)
    ordering = ("tenant_id", "name")
    search_fields = ("name",)
    autocomplete_fields = ("tenant",)
    fields = (
        *("tenant", "name", "kind", "endpoint", "allowed_hosts", "concurrency", "settings"),
        *("has_secret", "secret", "remove_secret", "health", "last_error", "revision"),
    )
    readonly_fields = ("has_secret", "health", "last_error")
    actions = ("switch_on", "hold", "go_on")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Add what is chosen once."""
        fields = super().get_readonly_fields(request, obj)
        return [*fields, "name", "kind"] if obj is not None else fields

    @admin.display(boolean=True, description=_("has a secret"))
    def has_secret(self, connection: Connection) -> bool:
        """Whether there is one; never which."""
        return bool(connection.secret_encrypted)

    @admin.display(description=_("health"))
    def health(self, connection: Connection) -> str:
        """How it does, and when it is tried again."""
        return connections.health(connection).sentence if connection.pk else ""

    @admin.action(description=_("Switch on again: what waits goes on at once"), permissions=["change"])
    def switch_on(self, request: HttpRequest, rows: QuerySet[Connection]) -> None:
        """Close the breakers of those chosen."""
        act(request, rows, connections.switch_on, done=str(_("%d connections are on.")))

    @admin.action(description=_("Pause: steps that use it wait"), permissions=["change"])
    def hold(self, request: HttpRequest, rows: QuerySet[Connection]) -> HttpResponse | None:
        """Steps that use them wait until they are resumed."""
        return ask_why(
            self, request, rows, pause.pause_connection,
            title=str(_("Pause the connections")), action="hold", done=str(_("%d connections are paused.")),
        )  # fmt: skip

    @admin.action(description=_("Resume: what waits goes on at once"), permissions=["change"])
    def go_on(self, request: HttpRequest, rows: QuerySet[Connection]) -> None:
        """Their pauses end; the list of pauses offers a rate as well."""
        act(request, rows, pause.resume_connection, done=str(_("%d connections are resumed.")))

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        """Save against the revision that was read; an empty secret keeps the present one."""
        values = form.cleaned_data
        secret = "" if values.get("remove_secret") else values.get("secret") or None
        try:
            connections.save(obj, base_revision=values["revision"] if change else None, secret=secret)
        except Refused as refusal:  # somebody was faster by a moment
            self.message_user(request, str(refusal), "error")
            return
        names = [name for name in form.changed_data if name != "revision"]
        before = self.shown(form.initial, names) if change else None
        self.note("changed" if change else "added", obj, before=before, after=self.shown(values, names))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete, and switch off the rules that name it."""
        self.note("deleted", obj, before={"name": obj.name, "kind": obj.kind})
        say_off(request, connections.delete(obj))
