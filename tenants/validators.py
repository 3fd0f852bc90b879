"""Checks of what a tenant may be set to."""

from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

MOST_DIGITS = 18  # with so many, every number fits the database's


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


def row_number(text: str) -> int | None:
    """Return the number that a text from an address is, None for what can't be a row's."""
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        return None
    return int(text)
