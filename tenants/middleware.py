"""Finds the tenant of a page under /t/<slug>/ and limits the request to it."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme

from tenants.context import NOBODY, Actor, acting_as, acting_for
from tenants.models import Membership, Tenant

PREFIX = "/t/"
SLUG = re.compile(r"[A-Za-z0-9_-]{1,60}")


class TenantRequest(HttpRequest):
    """The request of a page under /t/<slug>/, as its view gets it."""

    tenant: Tenant
    membership: Membership
    user: User


class TenantMiddleware:
    """Sets `request.tenant` and `request.membership`; both are None outside /t/.

    A tenant that doesn't exist, is closed, or isn't the person's gives the same 404. Someone who isn't logged in is
    sent to the login page whatever the slug, so that no answer tells which slugs exist. A streaming answer is produced
    after the scope has ended: it must enter its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the scope of the page's tenant; without any scope outside /t/."""
        request.tenant = request.membership = None  # type: ignore[attr-defined]
        actor = actor_of(request)
        if not request.path_info.startswith(PREFIX):
            with acting_as(actor):
                return self.get_response(request)
        if actor.id is None:
            return redirect_to_login(way_back(request))
        tenant = open_tenant(request.path_info.removeprefix(PREFIX).partition("/")[0])
        with acting_for(tenant.pk, actor):
            membership = (
                Membership.objects.filter(user_id=actor.id, is_active=True).select_related("tenant", "user").first()
            )
            if membership is None:
                raise Http404
            request.tenant, request.membership = tenant, membership  # type: ignore[attr-defined]
            return self.get_response(request)


def way_back(request: HttpRequest) -> str:
    """Where someone goes on after logging in: the page asked for, or the one that the form was on."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    page = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure()):
        return urlsplit(page)._replace(scheme="", netloc="").geturl()
    return f"{PREFIX}{request.path_info.removeprefix(PREFIX).partition('/')[0]}/"


def actor_of(request: HttpRequest) -> Actor:
    """Return the person behind a request, `NOBODY` when nobody is logged in."""
    user = request.user
    if not user.is_authenticated:
        return NOBODY
    return Actor("person", user.pk, user.get_full_name() or user.get_username())


def open_tenant(slug: str) -> Tenant:
    """Return the tenant of that slug; raise Http404 where there is none or it is closed."""
    tenant = Tenant.objects.filter(slug=slug, closed_at=None).first() if SLUG.fullmatch(slug) else None
    if tenant is None:
        raise Http404
    return tenant
