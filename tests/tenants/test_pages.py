"""A page under /t/ belongs to one tenant, and to its members only."""

import re

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path

from northwind.urls import urlpatterns as product
from tenants.context import acting_for, current_actor, current_tenant, has_scope
from tenants.middleware import TenantRequest
from tenants.models import Membership, Tenant
from tenants.permissions import needs, tenants_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


def whose(request: TenantRequest, slug: str) -> HttpResponse:
    return HttpResponse(f"{current_tenant() == request.tenant.pk} {request.membership.role} {current_actor().name}")


@needs("publisher")
def publish(request: TenantRequest, slug: str) -> HttpResponse:
    return HttpResponse("published")


def outside(request: TenantRequest) -> HttpResponse:
    return HttpResponse(f"{has_scope()} {request.tenant} {current_actor().kind}")


tenant_pages = [path("", whose), path("publish/", publish)]
urlpatterns = [path("t/<slug:slug>/", include(tenant_pages)), path("outside/", outside), *product]


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.create(name="Acme Retail", slug="acme")


@pytest.fixture
def contoso() -> Tenant:
    return Tenant.objects.create(name="Contoso", slug="contoso")


@pytest.fixture
def ana(acme: Tenant) -> User:
    user = User.objects.create(username="ana", first_name="Ana", last_name="Silva")
    with acting_for(acme.pk):
        Membership.objects.create(user=user, role="editor")
    return user


@pytest.fixture
def page(client: Client, ana: User) -> Client:
    client.force_login(ana)
    return client


def test_a_member_sees_the_page_in_the_scope_of_the_tenant(page):
    assert page.get("/t/acme/").content == b"True editor Ana Silva"


def test_outside_of_a_tenants_pages_there_is_no_scope_but_a_person(page):
    assert page.get("/outside/").content == b"False None person"


def test_a_visitor_is_sent_to_the_login_whether_the_tenant_exists_or_not(client, acme):
    for slug in ("acme", "nobody"):
        answer = client.get(f"/t/{slug}/?page=2")
        assert answer.status_code == 302
        assert answer.headers["Location"] == f"/accounts/login/?next=/t/{slug}/%3Fpage%3D2"


@pytest.mark.parametrize(
    ("page", "next_"),
    [
        ("http://testserver/t/acme/rules/7/?page=2", "/t/acme/rules/7/%3Fpage%3D2"),
        ("https://evil.example/t/acme/", "/t/acme/"),
        ("", "/t/acme/"),
    ],
)
def test_someone_whose_session_ended_over_a_form_comes_back_to_its_page(client, acme, page, next_):
    answer = client.post("/t/acme/rules/7/publish/", headers={"Referer": page})
    assert answer.headers["Location"] == f"/accounts/login/?next={next_}"


def test_another_tenant_answers_exactly_as_one_that_does_not_exist(page, contoso):
    theirs, nobodys = page.get("/t/contoso/"), page.get("/t/nobody/")
    assert theirs.status_code == nobodys.status_code == 404
    token = re.compile(rb'name="csrfmiddlewaretoken" value="\w+"')
    assert token.sub(b"", theirs.content).replace(b"contoso", b"nobody") == token.sub(b"", nobodys.content)


def test_a_closed_tenant_and_a_member_who_left_find_nothing(page, acme, ana):
    with acting_for(acme.pk):
        Membership.objects.update(is_active=False)
    assert page.get("/t/acme/").status_code == 404
    with acting_for(acme.pk):
        Membership.objects.update(is_active=True)
    Tenant.objects.update(closed_at="2026-01-01T00:00Z")
    assert page.get("/t/acme/").status_code == 404


@pytest.mark.parametrize("address", ["/t/", "/t//", "/t/acme\x00/", "/t/ac%00me/", "/t/../t/contoso/", "/t/%2e%2e/"])
def test_an_odd_address_finds_nothing(page, contoso, address):
    assert page.get(address).status_code == 404


def test_a_page_for_a_higher_role_is_refused(page, acme):
    assert page.get("/t/acme/publish/").status_code == 403
    with acting_for(acme.pk):
        Membership.objects.update(role="admin")
    assert page.get("/t/acme/publish/").content == b"published"


def test_a_misspelt_role_fails_when_the_module_is_loaded():
    with pytest.raises(ValueError, match="not in tuple"):
        needs("owner")


def test_a_person_is_offered_the_open_tenants_that_they_belong_to(ana, acme, contoso):
    assert list(tenants_of(ana)) == [acme]
    with acting_for(contoso.pk):
        Membership.objects.create(user=ana)
    assert list(tenants_of(ana)) == [acme, contoso]
    Tenant.objects.filter(pk=acme.pk).update(closed_at="2026-01-01T00:00Z")
    assert list(tenants_of(ana)) == [contoso]
    with acting_for(contoso.pk):
        Membership.objects.update(is_active=False)
    assert not tenants_of(ana)


def test_every_answer_names_its_request(page):
    assert page.get("/outside/", headers={"X-Request-ID": "abc-12345"}).headers["X-Request-ID"] == "abc-12345"
    assert len(page.get("/outside/", headers={"X-Request-ID": "x\n y"}).headers["X-Request-ID"]) == 32
