"""A page between an admin's action and its verb that asks for what the verb needs."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from automation.admin.base import AT_ONCE, act
from automation.engine.operate.bulk import FASTEST

APPLY = "apply"
REASON = 400


class ReasonForm(forms.Form):
    """Why: it is kept in the audit."""

    reason = forms.CharField(
        label=_("Reason"), max_length=REASON, required=False, widget=forms.TextInput(attrs={"size": 60})
    )


class NeededReasonForm(forms.Form):
    """Why, for what can't be taken back or stops others' work."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON,
        widget=forms.TextInput(attrs={"size": 60}),
        help_text=_("Kept in the audit, and shown to the tenant's people."),
    )


class ReplayForm(ReasonForm):
    """From where, with which version, and under which keys."""

    step = forms.CharField(label=_("From step"), max_length=200, required=False, help_text=_("Empty: the first."))
    live = forms.BooleanField(label=_("With the version that is live now"), required=False)
    as_new = forms.BooleanField(
        label=_("Send everything again as new"),
        required=False,
        help_text=_("Otherwise nothing is sent again that is known to have arrived."),
    )


class CompleteForm(ReasonForm):
    """What the step put out."""

    output = forms.JSONField(
        label=_("Output"), required=False, help_text=_("A JSON object that later steps read; empty for none.")
    )


class PostponeForm(ReasonForm):
    """Until when."""

    until = forms.DateTimeField(label=_("Until (UTC)"))


class PaceForm(ReasonForm):
    """What, how fast, how many at most, and when to stop."""

    verb = forms.ChoiceField(
        label=_("What to do"),
        required=False,
        choices=[
            ("retry", _("Retry: the runs go on at their dead steps")),
            ("retry_as_new", _("Send again as new: receivers take it for another effect")),
            ("discard", _("Give up: the runs stay failed")),
        ],
    )
    rate = forms.FloatField(label=_("A second"), initial=10, min_value=0.001, max_value=FASTEST)
    most = forms.IntegerField(label=_("At most"), required=False, min_value=1)
    stop_after = forms.IntegerField(
        label=_("Stop when so many have failed again"), required=False, min_value=1, initial=10
    )


def ask(
    page: "ModelAdmin[Any]",
    request: HttpRequest,
    rows: "QuerySet[Any]",
    form_class: type[forms.Form],
    *,
    title: str,
    action: str,
    verb: Callable[[dict[str, Any]], Callable[[int], object]],
    done: str,
) -> HttpResponse | None:
    """Shows the form for the chosen rows, or, once it is filled, does the verb that `verb` makes of it to each."""
    if len(rows[: AT_ONCE + 1]) > AT_ONCE:
        messages.error(request, gettext("At most %d at once: choose fewer.") % AT_ONCE)
        return None
    form = form_class(request.POST if APPLY in request.POST else None)
    if APPLY in request.POST and form.is_valid():
        act(request, rows, verb(form.cleaned_data), done=done)
        return None
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "title": title,
        "form": form,
        "rows": rows,
        "action": action,
        "checkbox": ACTION_CHECKBOX_NAME,
        "apply": APPLY,
    }
    return TemplateResponse(request, "admin/automation/ask.html", context)


def ask_why(
    page: "ModelAdmin[Any]",
    request: HttpRequest,
    rows: "QuerySet[Any]",
    verb: Callable[..., object],
    *,
    title: str,
    action: str,
    done: str,
) -> HttpResponse | None:
    """Asks for the reason, and does the verb, which takes it as `reason`, to each of the chosen rows."""
    return ask(
        page, request, rows, NeededReasonForm, title=title, action=action,
        verb=lambda given: partial(verb, **given), done=done,
    )  # fmt: skip
