"""Checks of what a tenant may be set to."""

from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _


def validate_time_zone(name: str) -> None:
    """Refuse a name that the time zone database doesn't have."""
    if name not in available_timezones():
        raise ValidationError(
            _("“%(name)s” isn't a time zone, such as Europe/Berlin."), code="time_zone", params={"name": name}
        )


def validate_language(code: str) -> None:
    """Refuse a language that the installation doesn't offer."""
    if code not in dict(settings.LANGUAGES):
        raise ValidationError(
            _("“%(code)s” isn't a language of this installation."), code="language", params={"code": code}
        )
