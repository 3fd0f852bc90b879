"""No page can be made to act, or be framed, from elsewhere; errors keep the policy; nothing leaks between requests."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.db import connection
from django.test import Client
from django.urls import get_resolver
from operating import Place, make_dead_run, make_live_run, make_rule
from operating import place as new_place

from automation.models import Pause
from automation.web import home
from tenants.context import acting_for, current_actor, has_scope
from tenants.models import AuditEntry
from tests.tenants.test_every_page import ARGUMENT, PREFIX, pages, routes

POLICY = "frame-ancestors 'none'"


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    """Acme with a rule, a run and a dead letter."""
    place = new_place(name="Acme Retail", slug="acme", time_zone="Pacific/Kiritimati")
    with acting_for(place.tenant.pk, place.actor):
        yield place


@pytest.fixture
def addresses(acme: Place) -> list[str]:
    """Every page of Acme, with ids of its own rows."""
    rule = make_rule(acme.tenant)
    ids = {"rule_id": rule.pk, "number": 1, "letter_id": make_dead_run(rule).pk, "run_id": make_live_run(rule).pk}
    return ["/" + ARGUMENT.sub(lambda found: str(ids[found[2]]), PREFIX.sub("t/acme/", route)) for route in pages()]


def client_of(place: Place, **about: Any) -> Client:
    client = Client(**about)
    client.force_login(place.admin.user)
    return client


def state() -> list[tuple[str, list[Any]]]:
    """Everything that is stored, but for sessions."""
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names(cursor) if name != "django_session"]
        found = []
        for name in sorted(tables):
            cursor.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1')
            found.append((name, cursor.fetchall()))
    return found


def test_every_post_needs_the_pages_own_token(acme: Place, addresses: list[str]) -> None:
    client = client_of(acme, enforce_csrf_checks=True)
    before = state()
    for address in [*addresses, "/accounts/logout/"]:
        answer = client.post(address, {"level": "hold", "reason": "x", "name": "x", "waiting": "cancel"})
        assert answer.status_code == 403, address
        assert POLICY in answer.headers["Content-Security-Policy"], address
    assert Client(enforce_csrf_checks=True).post("/accounts/login/", {"username": "a"}).status_code == 403
    assert state() == before


def test_looking_at_a_page_changes_nothing(acme: Place, addresses: list[str]) -> None:
    client = client_of(acme)
    before = state()
    for address in addresses:
        assert client.get(address, {"to": "up", "waiting": "cancel", "as_new": "yes"}).status_code in {
            200,
            302,
            404,
            405,
        }
    assert state() == before


def test_every_answer_forbids_frames_and_foreign_scripts(
    acme: Place, addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(acme, raise_request_exception=False)
    found = {address: client.get(address) for address in [*addresses, "/", "/nowhere/", "/t/nobody/", "/admin/"]}
    found["bad host"] = client.get("/", headers={"host": "evil.example"})
    found["login"] = Client().get("/accounts/login/")

    def fails(*_args: Any, **_options: Any) -> None:
        raise SuspiciousOperation("odd")

    monkeypatch.setattr(home, "tenants_of", fails)
    found["suspicious"] = client.get("/")
    monkeypatch.setattr(home, "tenants_of", None)
    found["broken"] = client.get("/")
    assert found["broken"].status_code == 500
    assert found["bad host"].status_code == found["suspicious"].status_code == 400
    for address, answer in found.items():
        policy = answer.headers.get("Content-Security-Policy", "")
        assert POLICY in policy, address
        assert "unsafe" not in policy, address
        assert answer.headers["X-Content-Type-Options"] == "nosniff", address


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\thttps://evil.example"],
)
def test_logging_in_leads_nowhere_else(acme: Place, target: str) -> None:
    acme.admin.user.set_password("pass word 12")
    acme.admin.user.save()
    client = Client()
    client.get("/accounts/login/")
    answer = client.post(
        "/accounts/login/", {"username": acme.admin.user.username, "password": "pass word 12", "next": target}
    )
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert client.get("/accounts/login/", {"next": target}).headers.get("Location") == "/"


def test_the_session_from_before_the_login_is_worth_nothing_after_it(acme: Place) -> None:
    acme.admin.user.set_password("pass word 12")
    acme.admin.user.save()
    client = Client()
    session = client.session
    session["planted"] = "yes"
    session.save()
    client.cookies["sessionid"] = planted = session.session_key
    client.post("/accounts/login/", {"username": acme.admin.user.username, "password": "pass word 12"})
    assert client.cookies["sessionid"].value != planted
    assert client.cookies["sessionid"]["httponly"]
    thief = Client()
    thief.cookies["sessionid"] = planted
    assert thief.get("/t/acme/rules/").status_code == 302


@pytest.mark.parametrize(
    "until", ["9999-12-31T23:59", "0001-01-01T00:00", "1000-01-01T00:00", "2026-02-30T00:00", "x" * 1000]
)
def test_a_pause_until_an_impossible_time_is_refused_in_words(acme: Place, until: str) -> None:
    client = client_of(acme)
    for zone in ("Pacific/Pago_Pago", "Pacific/Kiritimati"):
        type(acme.tenant).objects.filter(pk=acme.tenant.pk).update(time_zone=zone)
        answer = client.post("/t/acme/pause/", {"level": "hold", "reason": "x", "until": until})
        assert answer.status_code == 422, (zone, answer.status_code)
    assert not Pause.objects.exists()


def test_a_request_that_fails_leaves_no_scope_behind(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    place = new_place(name="Acme", slug="acme")
    client = client_of(place, raise_request_exception=False)
    seen: list[tuple[bool, bool]] = []

    def fails(*_args: Any) -> None:
        worker = threading.Thread(target=lambda: seen.append((has_scope(), current_actor().id is None)))
        worker.start()
        worker.join()
        raise RuntimeError

    monkeypatch.setattr("automation.web.rule_list.References", fails)
    assert client.get("/t/acme/rules/").status_code == 500
    assert seen == [(False, True)]  # a thread starts without anybody's scope
    assert not has_scope()
    assert current_actor().id is None


@pytest.mark.case("P01")
def test_staff_pages_are_no_way_around_the_tenant_for_its_people(acme: Place) -> None:
    client = client_of(acme)
    for route in routes(get_resolver()):
        if (
            route.startswith("admin/")
            and not re.search(r"[<(]", route)
            and "login" not in route
            and "logout" not in route
        ):
            answer = client.get(f"/{route}")
            assert answer.status_code in {302, 404}, route
            assert "/login/" in answer.headers.get("Location", "/login/"), route
    User.objects.filter(pk=acme.admin.user.pk).update(is_staff=True)  # staff without any permission
    for path in ("helpdesk/ticket/", "automation/connection/", "tenants/tenant/", "automation/run/"):
        assert client.get(f"/admin/{path}").status_code == 403, path
    assert not AuditEntry.objects.exists()
