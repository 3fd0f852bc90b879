"""Checks the moment at which a pause is to end by itself, and the rate at which it then goes on."""

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.models.pauses import MOST_A_MINUTE
from automation.store import clock

LONGEST = timedelta(days=36_525)  # a hundred years: what lies far beyond is no date that everybody can read


def check_until(until: datetime | None, rate: int | None) -> None:
    """Raises `Refused` for a moment that is past or very far ahead, and for a rate that makes no sense."""
    if until is not None and until <= clock.now():
        raise Refused(_("The time to resume by itself is past already."))
    if until is not None and until > clock.now() + LONGEST:
        raise Refused(_("The time to resume by itself is more than a hundred years ahead."))
    check_rate(rate)


def check_rate(rate: int | None) -> None:
    """Raises `Refused` for a rate that makes no sense; None is none."""
    if rate is not None and not 1 <= rate <= MOST_A_MINUTE:
        raise Refused(_("A rate is between 1 and %d a minute.") % MOST_A_MINUTE)
