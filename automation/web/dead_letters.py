"""The list of what failed for good and waits for a person, and the two things that can be done with it."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from automation.engine import labels
from automation.engine.operate import Refused
from automation.engine.operate import dead_letters as operate
from automation.models import DeadLetter
from automation.web import cursor
from tenants.middleware import TenantRequest
from tenants.permissions import needs


@require_safe
@needs("viewer")
def dead_letters(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Shows what waits for a person, newest first."""
    waiting = DeadLetter.objects.filter(resolved_at=None)
    waiting = waiting.select_related("run__rule", "run__rule_version", "step", "event")
    waiting = waiting.defer("snapshot", "event__facts", "run__rule_version__definition", "step__input", "step__output")
    page = cursor.page(waiting, request)
    keys = [key_of(letter) for letter in page.rows]
    named = labels.labels(keys)
    records = [named[key] if key else "" for key in keys]
    lines = list(zip(page.rows, records, strict=True))
    shown = {"page": page, "lines": lines, "may_operate": request.membership.may("publisher")}
    return render(request, "automation/dead_letters.html", shown)


@require_POST
@needs("publisher")
def retry(request: TenantRequest, tenant_slug: str, letter_id: int) -> HttpResponse:
    """Lets a run go on at its dead step."""
    try:
        operate.retry(letter_id, as_new=request.POST.get("as_new") == "yes")
    except DeadLetter.DoesNotExist as missing:
        raise Http404 from missing
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(
            request, _("It is tried again. The run goes on at this step; the steps before it aren't repeated.")
        )
    return _back(request, tenant_slug)


@require_POST
@needs("publisher")
def discard(request: TenantRequest, tenant_slug: str, letter_id: int) -> HttpResponse:
    """Gives a dead step up."""
    try:
        operate.discard(letter_id)
    except DeadLetter.DoesNotExist as missing:
        raise Http404 from missing
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("It was given up. The run stays failed."))
    return _back(request, tenant_slug)


def key_of(letter: DeadLetter) -> labels.Key | None:
    """The record that a dead letter is about."""
    about = letter.run or letter.event
    return (about.model, about.record) if about is not None and about.record is not None else None


def _back(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """To the run where the button was pressed there, else to the list."""
    run_id = cursor.number(request.POST.get("run"))
    if run_id is not None:
        return redirect("automation:run", tenant_slug, run_id)
    return redirect("automation:dead_letters", tenant_slug)
