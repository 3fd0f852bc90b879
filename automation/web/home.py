"""The first page: the tenants that a person works in."""

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from tenants.middleware import TenantRequest
from tenants.permissions import tenants_of


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Lists the person's tenants; who has only one goes straight there."""
    assert isinstance(request.user, User)  # noqa: S101  login_required lets nobody else in
    tenants = list(tenants_of(request.user))
    if len(tenants) == 1:
        return redirect("automation:rules", tenants[0].slug)
    return render(request, "automation/home.html", {"tenants": tenants})


@require_safe
def tenant(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """The start of one tenant: its rules."""
    return redirect("automation:rules", tenant_slug)
