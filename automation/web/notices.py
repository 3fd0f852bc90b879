"""The list of what people were told."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from automation.models import Notice
from automation.web import cursor
from tenants.middleware import TenantRequest
from tenants.permissions import needs


@require_safe
@needs("viewer")
def notices(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Shows the notices of the tenant, newest first."""
    language = request.membership.language or request.tenant.language
    shown = {"page": cursor.page(Notice.objects.all(), request), "language": language}
    return render(request, "automation/notices.html", shown)
