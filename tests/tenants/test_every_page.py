"""Whatever another tenant has answers as if it didn't exist, on every page and in every table."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.context import OtherTenantError, acting_for, every_tenant
from tenants.models import Membership, Tenant
from tests.architecture.test_tenant_owned import models_of_tenants
from tests.tenants.rows import NUMBER, row_of

PREFIX = re.compile(r"t/<slug:\w+>/")
ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")


def routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from routes(pattern, route)


def pages() -> list[str]:
    """Return the routes of all pages of a tenant."""
    return [route for route in routes(get_resolver()) if PREFIX.match(route)]


def address(route: str, slug: str) -> str:
    """Fill a route in with ids that only Contoso's rows have."""
    values = {"slug": "x", "str": "x", "int": str(NUMBER), None: "x"}
    return "/" + ARGUMENT.sub(lambda found: values[found[1]], PREFIX.sub(f"t/{slug}/", route, count=1))


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.create(name="Acme Retail", slug="acme")


@pytest.fixture
def contoso() -> Tenant:
    return Tenant.objects.create(name="Contoso", slug="contoso")


@pytest.fixture
def ana(client: Client, acme: Tenant) -> Client:
    """Ana may do everything, in Acme."""
    user = User.objects.create(username="ana")
    with acting_for(acme.pk):
        Membership.objects.create(user=user, role="admin")
    client.force_login(user)
    return client


def ask(client: Client, method: str, page: str) -> HttpResponse:
    return client.post(page) if method == "POST" else client.get(page)


def test_there_are_pages():
    assert len(pages()) > 5


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_page_of_another_tenant_exists(ana, contoso, method):
    found = {route: ask(ana, method, address(route, "contoso")).status_code for route in pages()}
    assert set(found.values()) <= {404}, found


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_page_of_ones_own_tenant_shows_or_changes_anothers_rows(ana, acme, contoso, method):
    for model in models_of_tenants():
        row_of(model, contoso)
    with_ids = [route for route in pages() if "<int:" in route]
    found = {route: ask(ana, method, address(route, "acme")).status_code for route in with_ids}
    # 405: the page has no such method, whatever the row.
    assert set(found.values()) <= {404, 405}, found


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_page_sends_a_visitor_to_the_login(client, contoso, method):
    for route in pages():
        answer = ask(client, method, address(route, "contoso"))
        assert answer.status_code == 302, route
        assert answer.headers["Location"].startswith("/accounts/login/?next="), route


@pytest.mark.django_db
@pytest.mark.parametrize("model", models_of_tenants(), ids=lambda model: model._meta.label)
def test_another_tenants_row_is_neither_found_nor_changed_nor_deleted(acme, contoso, model):
    theirs = row_of(model, contoso)
    mine = model._default_manager
    with acting_for(acme.pk):
        assert not mine.filter(pk=NUMBER).exists()
        assert mine.count() == 0
        assert mine.in_bulk([NUMBER]) == {}
        assert mine.filter(pk=NUMBER).delete()[0] == 0
        for write in (theirs.save, theirs.delete):
            with pytest.raises((OtherTenantError, ValidationError)), transaction.atomic():
                write()
    with every_tenant():
        assert mine.filter(pk=NUMBER).exists()
