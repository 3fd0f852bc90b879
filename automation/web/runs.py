"""The list of runs with its filters, and cancelling one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe
from django_stubs_ext import StrPromise

from automation.catalog import registry
from automation.core.facts import clean
from automation.core.states import Reason
from automation.engine import labels, lists
from automation.engine.operate import Refused
from automation.engine.operate import runs as operate
from automation.models import Rule, Run
from automation.web import cursor
from automation.web.forms import REASON_LIMIT
from tenants.middleware import TenantRequest
from tenants.permissions import needs

COUNTED = 5000  # the newest runs that fit, whose states are counted above the list
STATES: dict[str, tuple[StrPromise, tuple[str, ...]]] = {
    "running": (gettext_lazy("Running"), ("pending", "running")),
    "waiting": (gettext_lazy("Waiting"), ("waiting",)),
    "held": (gettext_lazy("Held"), ("paused",)),
    "done": (gettext_lazy("Done"), ("succeeded",)),
    "failed": (gettext_lazy("Failed"), ("failed", "compensation_failed")),
    "cancelled": (gettext_lazy("Cancelled"), ("cancelled",)),
    "not_started": (gettext_lazy("Not started, or stopped by loop protection"), ("suppressed",)),
}
TIMES: dict[str, tuple[StrPromise, timedelta | None]] = {
    "1h": (gettext_lazy("last hour"), timedelta(hours=1)),
    "24h": (gettext_lazy("last 24 hours"), timedelta(hours=24)),
    "7d": (gettext_lazy("last 7 days"), timedelta(days=7)),
    "30d": (gettext_lazy("last 30 days"), timedelta(days=30)),
    "all": (gettext_lazy("any time"), None),
}
USUAL_TIME = "24h"
REASONS = [reason.value for reason in Reason]
TALLIED = ("done", "failed", "waiting", "running", "not_started")


@dataclass(slots=True)
class Filters:
    """What the address asks for: as typed, as the list takes it, and what can't be understood.

    `nothing`: a filter names what doesn't exist, so no run fits.
    """

    typed: dict[str, str]
    given: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    nothing: bool = False

    @property
    def any(self) -> bool:
        """Whether anything but the usual time is asked for."""
        return any(value for name, value in self.typed.items() if name != "time") or self.typed["time"] != USUAL_TIME


@dataclass(frozen=True, slots=True)
class Line:
    """A run in the list with the name of its record."""

    run: Run
    record: str


@require_safe
@needs("viewer")
def runs(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Shows the runs that fit the filters, newest first, with how many are in which state."""
    filters = read_filters(request.GET, now=timezone.now())
    fitting = Run.objects.none() if filters.nothing else lists.runs(**filters.given)
    wanted = fitting.select_related(None).select_related("rule", "rule_version").defer("rule_version__definition")
    page = cursor.page(wanted, request)
    shown = {
        "filters": filters,
        "page": page,
        "lines": _lines(page.rows),
        "tally": _tally(filters),
        "now": timezone.now(),
        "states": {name: word for name, (word, _states) in STATES.items()},
        "times": {name: word for name, (word, _span) in TIMES.items()},
        "reasons": REASONS,
        "rules": Rule.objects.filter(deleted_at=None).order_by("position", "id").only("name"),
        "live": "before" not in request.GET and "after" not in request.GET,
    }
    return render(request, "automation/runs.html", shown, status=422 if filters.errors else 200)


@require_POST
@needs("publisher")
def cancel(request: TenantRequest, tenant_slug: str, run_id: int) -> HttpResponse:
    """Cancels a run, at once or as soon as its worker returns."""
    try:
        done = operate.cancel(run_id, reason=clean(request.POST.get("reason", "").strip())[:REASON_LIMIT])
    except Run.DoesNotExist as missing:
        raise Http404 from missing
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        said = _("The worker was asked to stop: it ends after its step.") if done.asked else _("The run is cancelled.")
        messages.success(request, said)
    return redirect("automation:run", tenant_slug, run_id)


def read_filters(query: QueryDict, *, now: datetime) -> Filters:
    """The filters in an address."""
    typed = {name: query.get(name, "").strip() for name in ("rule", "state", "reason", "record", "time")}
    typed["time"] = typed["time"] if typed["time"] in TIMES else USUAL_TIME
    filters = Filters(typed)
    span = TIMES[typed["time"]][1]
    if span is not None:
        filters.given["since"] = now - span
    if typed["rule"]:
        rule_id = cursor.number(typed["rule"])
        filters.nothing |= rule_id is None
        filters.given["rule_id"] = rule_id
    if typed["state"]:
        filters.nothing |= typed["state"] not in STATES
        filters.given["states"] = STATES.get(typed["state"], ("", ()))[1]
    if typed["reason"]:
        filters.nothing |= typed["reason"] not in REASONS
        filters.given["reason"] = typed["reason"]
    if typed["record"]:
        _read_record(filters)
    return filters


def _read_record(filters: Filters) -> None:
    """A record as people write it: "12", "ticket 12", "helpdesk.ticket:12"."""
    words = filters.typed["record"].replace(":", " ").replace("#", " ").lower().split()
    record = cursor.number(words[-1]) if words else None
    if record is None:
        filters.errors["record"] = _("Write a record by its number, like 12 or “ticket 12”.")
        filters.nothing = True
        return
    filters.given["record"] = record
    kind = " ".join(words[:-1])
    if not kind:
        return
    named = (name for name, entry in registry.models.items() if kind in (name, entry.short_name, entry.label.lower()))
    model = next(named, None)
    filters.nothing |= model is None
    filters.given["model"] = model or ""


def _lines(rows: Sequence[Run]) -> list[Line]:
    keys = [(run.model, run.record) if run.record is not None else None for run in rows]
    named = labels.labels(keys)
    return [Line(run, named[key] if key else "") for run, key in zip(rows, keys, strict=True)]


def _tally(filters: Filters) -> dict[str, Any]:
    """How many of the newest runs that fit are in which state; the filter by state itself is left out."""
    if filters.nothing:
        return {}
    given = {name: value for name, value in filters.given.items() if name != "states"}
    newest: QuerySet[Run, str] = lists.runs(**given).order_by("-pk").values_list("state", flat=True)
    states = Counter(newest[:COUNTED])
    return {
        "cut": states.total() >= COUNTED,
        "limit": COUNTED,
        "words": [
            (name, STATES[name][0], number)
            for name in TALLIED
            if (number := sum(states[state] for state in STATES[name][1]))
        ],
    }
