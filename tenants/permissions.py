"""Says who may do what in a tenant."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http.response import HttpResponseBase

from tenants.context import every_tenant
from tenants.middleware import TenantRequest
from tenants.models import Membership, Tenant
from tenants.roles import ROLES, includes

__all__ = ["ROLES", "needs", "tenants_of"]

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)
View = Callable[Concatenate[TenantRequest, P], R]


def needs(role: str) -> Callable[[View[P, R]], View[P, R]]:
    """Let only members of `role`, or a higher one, into a view under /t/; others get the page of status 403."""
    includes(role, role)  # a misspelt role fails when the module is loaded

    def decorate(view: View[P, R]) -> View[P, R]:
        @wraps(view)
        def guarded(request: TenantRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if not request.membership.may(role):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def tenants_of(user: User) -> QuerySet[Tenant]:
    """Return the open tenants that a person belongs to, by name: the one place where a person's tenants are listed."""
    with every_tenant():
        memberships: QuerySet[Membership, Any] = Membership.objects.filter(user=user, is_active=True)
    return Tenant.objects.filter(closed_at=None, pk__in=memberships.values("tenant_id"))
