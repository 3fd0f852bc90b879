"""The page that pauses a tenant's automations, shows how far the pause has come, and resumes them."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from automation.engine.operate import Refused, pause
from automation.engine.operate.held import AGES
from automation.web.forms import PauseForm, ResumeForm, first_errors
from tenants.middleware import TenantRequest
from tenants.permissions import needs

HARDEST = "cancel"  # the level that can't be taken back: for admins
SAID = {
    "all": gettext_lazy("The automations run again. What was kept is done now, oldest first."),
    "recent": gettext_lazy("The automations run again. What was recent is done now, the rest was dropped."),
    "drop": gettext_lazy("The automations run again. What was held was dropped."),
}
SLOW_SECONDS = 60  # workers that don't confirm within it are named in an alert


@require_http_methods(["GET", "POST"])
@needs("viewer")
def overview(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Shows what is paused and what that holds; without a pause, the form that begins one."""
    status = pause.status()
    if request.method == "POST":
        return _begin(request, tenant_slug)
    slow = status.pause is not None and (timezone.now() - status.pause.since).total_seconds() > SLOW_SECONDS
    values = {"level": "hold", "keep": "all", "recent_minutes": AGES[0]}
    shown = {"status": status, "slow": slow, "values": values, **_choices(request), **_held(status)}
    return render(request, "automation/pause.html", shown)


@require_POST
@needs("publisher")
def resume(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Ends the tenant's pause as asked, or changes how what it held goes on; doing it twice says the same."""
    if not pause.open_pause() and not pause.dripping():
        messages.info(request, _("Nothing is paused: the automations run."))
        return redirect("automation:pause", tenant_slug)
    form = ResumeForm(request.POST)
    if not form.is_valid():
        return _again(request, first_errors(form))
    choice = form.choice()
    if choice.keep != "all" and not request.membership.may("admin"):
        raise PermissionDenied
    status = pause.resume(choice)
    if status.dripping is not None:
        messages.success(request, _("The automations run again. What was held goes on at the rate you chose."))
        return redirect("automation:pause", tenant_slug)
    messages.success(request, SAID[choice.keep])
    return redirect("automation:rules", tenant_slug)


def _begin(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    if not request.membership.may("publisher"):
        raise PermissionDenied
    with timezone.override(request.tenant.zone):
        form = PauseForm(request.POST)
        valid = form.is_valid()
    if not valid:
        return _again(request, first_errors(form))
    level = form.cleaned_data["level"]
    if level == HARDEST and not request.membership.may("admin"):
        raise PermissionDenied
    try:
        asked = {name: form.cleaned_data[name] for name in ("reason", "until")}
        pause.pause(level=level, rate=form.cleaned_data["pause_rate"], **asked)
    except Refused as refusal:
        return _again(request, {"until": str(refusal)})
    return redirect("automation:pause", tenant_slug)


def _again(request: TenantRequest, errors: dict[str, str]) -> HttpResponse:
    """The form once more, with everything that was typed."""
    status = pause.status()
    shown = {"status": status, "errors": errors, "values": request.POST, **_choices(request), **_held(status)}
    return render(request, "automation/pause.html", shown, status=422)


def _choices(request: TenantRequest) -> dict[str, object]:
    may_pause = request.membership.may("publisher")
    return {
        "may_pause": may_pause,
        "may_cancel": request.membership.may("admin"),
        "may_drop": request.membership.may("admin"),
        "concerned": pause.concerned() if may_pause else None,
    }


def _held(status: pause.PauseStatus) -> dict[str, object]:
    """What is held in detail, where something is."""
    if status.pause is None and status.dripping is None:
        return {}
    return {"by_rule": pause.held_by_rule(), "by_kind": pause.kept_by_kind(), "younger": pause.younger()}
