"""The page that answers why a rule ran for a record's events, or didn't."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.catalog import registry
from automation.engine.explain import explain, explain_event
from automation.models import Event, Rule
from tenants.context import acting_for
from tenants.validators import row_number


class WhyForm(forms.Form):
    """Which record, and when."""

    model = forms.ChoiceField(label=_("Kind of record"))
    record = forms.CharField(label=_("Its number"), max_length=20)
    since = forms.DateTimeField(label=_("From (UTC)"), required=False)
    until = forms.DateTimeField(label=_("Until (UTC)"), required=False)
    after = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        watched = ((name, entry.label) for name, entry in registry.models.items() if entry.watched)
        self.fields["model"].choices = sorted(watched, key=lambda pair: pair[1])  # type: ignore[attr-defined]

    def clean_record(self) -> int:
        """The number of a record."""
        number = row_number(self.cleaned_data["record"])
        if number is None:
            raise forms.ValidationError(_("This is no number of a record."))
        return number


def why_view(page: "admin.ModelAdmin[Any]", request: HttpRequest, object_id: str) -> HttpResponse:
    """Asks for a record and a time, and explains each event of it."""
    rule: Rule | None = page.get_object(request, object_id)
    if rule is None or not page.has_view_permission(request, rule):
        raise Http404
    form = WhyForm(request.GET or None)
    found = None
    if form.is_bound and form.is_valid():
        with acting_for(rule.tenant_id):
            asked = {**form.cleaned_data, "after": form.cleaned_data["after"] or 0}
            found = explain(rule.pk, **asked)
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "original": rule,
        "title": _("Why did it not run?"),
        "form": form,
        "found": found,
    }
    return TemplateResponse(request, "admin/automation/explain.html", context)


def judged_by(event: Event) -> SafeString | str:
    """What became of an event at each rule that listens to its kind of record."""
    with acting_for(event.tenant_id):
        answers = explain_event(event.pk)
    if not answers:
        return str(_("No rule listens to such an event."))
    lines = ((answer.rule_name, str(answer.gate), answer.sentence) for answer in answers)
    return format_html("<ul>{}</ul>", format_html_join("", "<li><b>{}</b> ({}): {}</li>", lines))
