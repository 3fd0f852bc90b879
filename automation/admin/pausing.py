"""The pages on which staff pause and resume: what is held is shown first, then asked what becomes of it."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from automation.engine.operate import Refused
from automation.engine.operate.pause import Choice
from automation.models.pauses import MOST_A_MINUTE

REASON = 400
LEVELS = [
    ("hold", _("Hold: no new runs, and running ones stop at their next step")),
    ("new", _("New runs only: running ones go on")),
    ("cancel", _("Everything, and cancel what runs or waits")),
]


class PauseForm(forms.Form):
    """How much stops, why, and optionally when it goes on by itself and how fast."""

    level = forms.ChoiceField(label=_("Level"), choices=LEVELS)
    reason = forms.CharField(label=_("Reason"), max_length=REASON, widget=forms.TextInput(attrs={"size": 60}))
    until = forms.DateTimeField(label=_("Resume by itself at (UTC)"), required=False)
    rate = forms.IntegerField(
        label=_("Then so many a minute (empty: at once)"), required=False, min_value=1, max_value=MOST_A_MINUTE
    )

    def __init__(self, *args: Any, without_cancel: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if without_cancel:
            self.fields["level"] = forms.ChoiceField(label=_("Level"), choices=LEVELS[:2])


class ResumeForm(forms.Form):
    """What becomes of what was held, and how fast."""

    keep = forms.ChoiceField(
        label=_("What was held"),
        required=False,
        choices=[
            ("all", _("All of it goes on, oldest first")),
            ("recent", _("Only the recent goes on; the rest is dropped")),
            ("drop", _("All of it is dropped: events start nothing, waiting runs are cancelled")),
        ],
    )
    recent_minutes = forms.IntegerField(
        label=_("Recent: not older than so many minutes"), required=False, min_value=1, max_value=525_600
    )
    rate = forms.IntegerField(
        label=_("So many a minute (empty: at once)"), required=False, min_value=1, max_value=MOST_A_MINUTE
    )

    def choice(self) -> Choice:
        """What was chosen."""
        values = self.cleaned_data
        recent = values["recent_minutes"] if values["keep"] == "recent" else None
        return Choice(keep=values["keep"] or "all", recent_minutes=recent, rate=values["rate"])


def resume_form(request: HttpRequest) -> ResumeForm:
    """The form as it was sent, or as it is offered first."""
    sent = request.POST if request.method == "POST" else None
    return ResumeForm(sent, initial={"keep": "all", "recent_minutes": 60})


def asked(form: forms.Form, request: HttpRequest, verb: Callable[[], object], *, done: str) -> bool:
    """Does the verb for a form that was sent and is valid, and says so; a refusal becomes an error of the form."""
    if request.method != "POST" or not form.is_valid():
        return False
    try:
        verb()
    except Refused as refusal:
        form.add_error(None, str(refusal))
        return False
    messages.success(request, done)
    return True


def page(admin: Any, request: HttpRequest, template: str, **shown: Any) -> HttpResponse:
    """A page of the admin with its usual frame."""
    context = {**admin.admin_site.each_context(request), "opts": admin.opts, "now": timezone.now(), **shown}
    return TemplateResponse(request, template, context)
