"""The admin of the installation's staff: it sees every tenant, and each look into one is audited."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import unquote
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tenants.audit import record
from tenants.context import acting_as, every_tenant
from tenants.middleware import actor_of
from tenants.models import Tenant
from tenants.validators import row_number

VIEWED = "staff.viewed"
SEEN = "staff_viewed"  # in the session: when this member of staff was last noted as looking, by tenant
ONCE_IN = timedelta(hours=1)
ALL = "all"

View = Callable[..., HttpResponseBase]


class StaffSite(AdminSite):
    """Django's admin, each page of it inside `every_tenant()`; no other page of the product lifts the scope."""

    site_header = _("Northwind, for staff")
    site_title = _("Northwind")
    index_title = _("Installation")

    def admin_view(self, view: View, cacheable: bool = False) -> View:  # type: ignore[override]  # wider than the stub
        """Return the view as Django guards it, in the scope of every tenant and on behalf of the person."""
        guarded = super().admin_view(view, cacheable)
        page_of = getattr(view, "__self__", None)
        model = page_of.model if isinstance(page_of, ModelAdmin) else None

        @wraps(guarded)
        def in_every_tenant(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with every_tenant(), acting_as(actor_of(request)):
                response = guarded(request, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    response.render()  # here, since what the page still asks for needs the scope too
                if model is not None and response.status_code == 200 and request.user.is_authenticated:
                    _note(request, model, kwargs.get("object_id"))
                return response

        return in_every_tenant


def _note(request: HttpRequest, model: type[Model], object_id: str | None) -> None:
    """Write that this person looked into a tenant, once an hour and session; a whole list counts as all tenants."""
    if model is Tenant and object_id is None:
        return  # that a tenant exists is no data of it
    if model is not Tenant and not hasattr(model, "tenant"):
        return
    asked = [] if object_id else [one for one in request.GET.getlist("tenant__id__exact") if one]
    owner = _owner(model, object_id) if object_id else _chosen(asked)
    if len(asked) == 1 and owner is None:
        return  # a tenant that isn't there: the list is empty
    seen: dict[str, str] = request.session.get(SEEN, {})
    key, now = str(owner or ALL), timezone.now()
    if key in seen and now - datetime.fromisoformat(seen[key]) < ONCE_IN:
        return
    record(VIEWED, f"{model._meta.label_lower}:{object_id or ''}".rstrip(":"), tenant_id=owner)
    request.session[SEEN] = {**seen, key: now.isoformat()}


def _owner(model: type[Model], object_id: str) -> int | None:
    """Return the tenant of a row, None where it is the installation's."""
    column = "pk" if model is Tenant else "tenant_id"
    rows = model._base_manager.filter(pk=unquote(object_id))
    return rows.values_list(column, flat=True).first()


def _chosen(asked: list[str]) -> int | None:
    """Return the tenant that a list is limited to, None for all, for several, and for one that doesn't exist."""
    number = row_number(asked[0]) if len(asked) == 1 else None
    found = Tenant.objects.filter(pk=number) if number is not None else Tenant.objects.none()
    return found.values_list("pk", flat=True).first()
