"""The small forms of the pages: what may be typed, and what is said when it doesn't fit."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from automation.engine.operate.held import AGES
from automation.engine.operate.pause import LEVELS, Choice
from automation.models.pauses import MOST_A_MINUTE, PAUSE_KEEPS

NAME_LIMIT, NOTE_LIMIT, REASON_LIMIT = 120, 400, 400
NO_NAME = _("Give the rule a name.")
OLD_FORM = _("This page was too old. Look at the changes again, then publish.")
A_RATE = _("A rate is a number between 1 and 60000, or empty.")
RATES = {"invalid": A_RATE, "min_value": A_RATE, "max_value": A_RATE}
NO_REASON = _("Say why: people who look here later need it.")


class NameForm(forms.Form):
    """The name of a rule."""

    name = forms.CharField(
        max_length=NAME_LIMIT,
        error_messages={"required": NO_NAME, "max_length": _("A name has at most %(limit_value)d characters.")},
    )


class PublishForm(forms.Form):
    """What is published: the revision that was looked at, and a note for the list of versions."""

    revision = forms.IntegerField(min_value=0, error_messages={"required": OLD_FORM, "invalid": OLD_FORM})
    note = forms.CharField(
        max_length=NOTE_LIMIT,
        required=False,
        error_messages={"max_length": _("A note has at most %(limit_value)d characters.")},
    )


class PauseForm(forms.Form):
    """How a tenant is paused: the level, the reason, and optionally when to go on by itself, in the tenant's zone."""

    level = forms.ChoiceField(
        choices=[(level, level) for level in LEVELS], error_messages={"required": _("Choose what should stop.")}
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        error_messages={"required": NO_REASON, "max_length": _("A reason has at most %(limit_value)d characters.")},
    )
    until = forms.DateTimeField(
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        error_messages={"invalid": _("Write the time like 2026-11-03 12:00, or leave it empty.")},
    )

    pause_rate = forms.IntegerField(required=False, min_value=1, max_value=MOST_A_MINUTE, error_messages=RATES)

    def clean_until(self) -> datetime | None:
        """The moment must lie ahead."""
        until: datetime | None = self.cleaned_data["until"]
        if until is not None and until <= timezone.now():
            raise forms.ValidationError(_("This time is past already: choose a later one, or leave it empty."))
        return until


class ResumeForm(forms.Form):
    """What becomes of what was held, and how fast."""

    keep = forms.ChoiceField(choices=[(keep, keep) for keep in PAUSE_KEEPS], required=False)
    recent_minutes = forms.TypedChoiceField(
        choices=[(age, str(age)) for age in AGES], coerce=int, required=False, empty_value=None
    )
    rate = forms.IntegerField(required=False, min_value=1, max_value=MOST_A_MINUTE, error_messages=RATES)

    def choice(self) -> Choice:
        """What was chosen; nothing chosen is all of it at once."""
        values = self.cleaned_data
        recent = (values["recent_minutes"] or AGES[0]) if values["keep"] == "recent" else None
        return Choice(keep=values["keep"] or "all", recent_minutes=recent, rate=values["rate"])


class ReasonForm(forms.Form):
    """Why something is held or ended."""

    reason = forms.CharField(max_length=REASON_LIMIT, error_messages={"required": NO_REASON})


def first_errors(form: forms.Form) -> dict[str, Any]:
    """The first message of each faulty field, by the field's name."""
    return {name: messages[0] for name, messages in form.errors.items()}
