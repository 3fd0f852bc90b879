"""Finds what the words of a command line name, and says in one sentence where there is no such thing."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from automation.core.values import MAX_DEPTH
from automation.management.arguments import misused
from automation.management.near import unknown
from automation.models import Connection, Rule
from tenants.models import Tenant
from tenants.validators import row_number

RATE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)/([smh])")
SPAN = re.compile(r"(\d{1,6})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
A_MINUTE = {"s": 60.0, "m": 1.0, "h": 1 / 60}


def tenant_named(slug: str) -> Tenant:
    """The tenant of that slug, closed ones too."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise unknown("tenant", slug, Tenant.objects.values_list("slug", flat=True))
    return tenant


def a_minute(text: str | None) -> float | None:
    """A rate such as "50/s", "600/m" or "20/h", in so many a minute; None for none."""
    if text is None:
        return None
    found = RATE.fullmatch(text)
    if found is None:
        raise misused(f"A rate is written like 50/s, 600/m or 20/h, not {text!r}.")
    return float(found[1]) * A_MINUTE[found[2]]


def span(text: str) -> timedelta:
    """A span such as "90s", "15m", "2h" or "3d"."""
    found = SPAN.fullmatch(text)
    if found is None:
        raise misused(f"A span is written like 90s, 15m, 2h or 3d, not {text!r}.")
    return timedelta(seconds=int(found[1]) * SECONDS[found[2]])


def moment(text: str | None) -> datetime | None:
    """A moment, as a span from now or as a date and time with its offset; None for none."""
    if text is None:
        return None
    if SPAN.fullmatch(text):
        return timezone.now() + span(text)
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or timezone.is_naive(found):
        raise misused(f"A moment is written like 2h or 2026-11-03T12:00:00+01:00, not {text!r}.")
    return found


def rule_named(text: str, *, deleted: bool = False) -> Rule:
    """The rule of the current tenant with that number or name; two of one name are told apart by their numbers."""
    present = Rule.objects.all() if deleted else Rule.objects.filter(deleted_at=None)
    number = row_number(text)
    found = list(present.filter(pk=number)) if number is not None else []
    found = found or list(present.filter(name=text).order_by("id"))
    if not found:
        raise unknown("rule", text, present.values_list("name", flat=True), whose=" of this tenant")
    if len(found) > 1:
        raise CommandError(f"There are several rules {text!r}: {', '.join(str(rule.pk) for rule in found)}.")
    return found[0]


def connection_named(text: str) -> Connection:
    """The connection of the current tenant with that name."""
    found = Connection.objects.filter(name=text).first()
    if found is None:
        known = Connection.objects.values_list("name", flat=True)
        raise unknown("connection", text, known, whose=" of this tenant")
    return found


def record_named(text: str, option: str = "--record") -> tuple[str, int]:
    """The model and the number that "helpdesk.ticket:12" names; whether there is such a record is not looked at."""
    model, _colon, key = text.partition(":")
    number = row_number(key)
    if not model or number is None:
        raise misused(f"{option} is a model and a number, such as helpdesk.ticket:12, not {text!r}.")
    return model, number


def readable_json(path: Path) -> Any:
    """The JSON of a file; what is wrong with it is said with its line and column."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise CommandError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise CommandError(f"{path} is nested more than {MAX_DEPTH} levels deep.") from error
