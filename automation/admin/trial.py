"""The page on which a rule's draft is tried out, or compared with its live version over stored events."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from automation.admin.base import ReadOnlyAdmin
from automation.core.errors import DefinitionError
from automation.core.spec import RuleSpec
from automation.engine import backtest, samples
from automation.engine.operate import Refused
from automation.engine.samples import Sample
from automation.engine.trial import Options, definition_of, trial
from automation.engine.trial_report import TrialReport
from automation.models import Rule
from tenants.context import acting_for
from tenants.validators import row_number

NUMBERED = ("event", "run", "record")
START = "backtest"


class TrialForm(forms.Form):
    """On what, at which moment, and how waits and effects go."""

    on = forms.ChoiceField(
        label=_("Try it on"),
        choices=[
            ("record", _("a record as it is now")),
            ("event", _("a stored event")),
            ("run", _("a past run")),
            ("facts", _("facts of my own")),
        ],
    )
    number = forms.CharField(label=_("Its number"), max_length=20, required=False)
    was = forms.JSONField(
        label=_("Values before"), required=False, help_text=_('Of a record: {"priority": "normal"} counts as changed.')
    )
    facts = forms.JSONField(
        label=_("Facts"), required=False, help_text=_('A JSON object: {"snapshot": {"subject": "Lamp"}, "before": {}}.')
    )
    waits = forms.ChoiceField(label=_("Waits"), choices=[("pass", _("pass at once")), ("stay", _("end the test"))])
    effects = forms.ChoiceField(
        label=_("Effects outside"),
        choices=[("recorded", _("succeed")), ("fail", _("fail")), ("timeout", _("get no answer"))],
    )
    at = forms.DateTimeField(label=_("At (UTC)"), required=False)

    def clean(self) -> dict[str, Any]:
        """A number where one is needed, objects where objects are."""
        found = super().clean() or {}
        if found.get("on") in NUMBERED and row_number(found.get("number") or "") is None:
            self.add_error("number", _("This is no number."))
        if found.get("was") is not None and not isinstance(found["was"], dict):
            self.add_error("was", _("This is no JSON object."))
        return found


def try_view(page: ReadOnlyAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Tries the draft, or starts a backtest of it and goes to its page; what is refused is said above the form."""
    rule: Rule | None = page.get_object(request, object_id)
    if rule is None or rule.deleted_at is not None:
        raise Http404
    if not page.has_view_permission(request, rule):
        raise PermissionDenied
    may_start = page.has_operate_permission(request)
    if START in request.POST and not may_start:
        raise PermissionDenied
    form = TrialForm(request.POST if request.method == "POST" and START not in request.POST else None)
    found = None
    if START in request.POST:
        started = _safely(rule, form, lambda: backtest.start(rule.pk))
        if started is not None:
            return HttpResponseRedirect(reverse("admin:automation_backtest_change", args=[started.pk]))
    elif form.is_bound and form.is_valid():
        found = _safely(rule, form, partial(_tried, rule.pk, form.cleaned_data))
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "original": rule,
        "title": _("Try it out"),
        "form": form,
        "found": found,
        "start": START if may_start else "",
    }
    return TemplateResponse(request, "admin/automation/trial.html", context)


def _tried(rule_id: int, given: dict[str, Any]) -> TrialReport:
    options = Options(waits=given["waits"], at=given["at"], answers={"*": given["effects"]})
    return trial(definition_of(rule_id), partial(_sample, rule_id, given), rule_id=rule_id, options=options)


def _sample(rule_id: int, given: dict[str, Any], spec: RuleSpec) -> Sample:
    if given["on"] == "facts":
        return samples.of_json(given["facts"] or {}, spec, rule_id=rule_id)
    number = row_number(given["number"]) or 0
    if given["on"] == "record":
        return samples.of_record(spec.trigger.model, number, spec, rule_id=rule_id, was=given["was"])
    return samples.of_event(number) if given["on"] == "event" else samples.of_run(number)


def _safely(rule: Rule, form: TrialForm, verb: Callable[[], Any]) -> Any:
    """What the verb answers; None where it was refused, which the page then says."""
    try:
        with acting_for(rule.tenant_id):
            return verb()
    except (Refused, DefinitionError) as refusal:
        form.errors.setdefault("__all__", form.error_class()).append(str(refusal))
    except (ObjectDoesNotExist, LookupError):
        form.errors.setdefault("__all__", form.error_class()).append(str(_("There is no such thing of this tenant.")))
    return None
