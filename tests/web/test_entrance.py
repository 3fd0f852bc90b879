"""People log in, see their tenants, and log out."""

import pytest
from django.test import Client
from factories import MembershipFactory, UserFactory
from operating import place as new_place

from tenants.context import acting_for


@pytest.fixture
def maria(db):
    user = UserFactory(username="maria")
    user.set_password("a good password")
    user.save()
    return user


def join(user, **about):
    place = new_place(**about)
    with acting_for(place.tenant.pk):
        MembershipFactory(tenant=place.tenant, user=user, role="viewer")
    return place


def test_logging_in_leads_to_where_one_wanted_to_go(client, maria):
    join(maria, name="Acme Retail", slug="acme")
    answer = client.post(
        "/accounts/login/", {"username": "maria", "password": "a good password", "next": "/t/acme/runs/"}
    )
    assert answer.headers["Location"] == "/t/acme/runs/"


def test_a_wrong_password_is_said_in_words_and_the_name_is_kept(client, maria):
    text = client.post("/accounts/login/", {"username": "maria", "password": "wrong"}).content.decode()
    assert "belong together" in text
    assert 'value="maria"' in text
    assert "wrong" not in text.replace("went wrong", "")


def test_logging_in_never_leads_to_another_site(client, maria):
    asked = {"username": "maria", "password": "a good password", "next": "https://evil.example/"}
    assert client.post("/accounts/login/", asked).headers["Location"] == "/"


def test_who_has_several_tenants_chooses_and_sees_no_others(client, maria):
    join(maria, name="Acme Retail", slug="acme")
    join(maria, name="Contoso", slug="contoso")
    new_place(name="Fabrikam", slug="fabrikam")
    client.force_login(maria)
    text = client.get("/").content.decode()
    assert "Acme Retail" in text
    assert "Contoso" in text
    assert "Fabrikam" not in text


def test_who_has_one_tenant_goes_straight_there(client, maria):
    join(maria, slug="acme")
    client.force_login(maria)
    assert client.get("/").headers["Location"] == "/t/acme/rules/"
    assert client.get("/t/acme/").headers["Location"] == "/t/acme/rules/"


def test_who_has_none_is_told_what_to_do(client, maria):
    client.force_login(maria)
    assert "belong to a tenant yet" in client.get("/").content.decode()


def test_the_start_asks_visitors_to_log_in(client, db):
    assert client.get("/").headers["Location"] == "/accounts/login/?next=/"


def test_logging_out_needs_a_press_and_ends_the_session(client, maria):
    join(maria, slug="acme")
    client.force_login(maria)
    assert client.get("/accounts/logout/").status_code == 405
    client.post("/accounts/logout/")
    assert client.get("/t/acme/rules/").status_code == 302


def test_a_form_without_its_token_gets_a_page_in_words(maria):
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/accounts/login/", {"username": "maria", "password": "x"})
    assert answer.status_code == 403
    assert "The form is too old" in answer.content.decode()


def test_an_address_for_forms_alone_says_so_with_a_way_back(client, maria):
    join(maria, slug="acme")
    client.force_login(maria)
    for address in ("/t/acme/pause/resume/", "/t/acme/rules/3/on/", "/t/acme/runs/4/cancel/", "/accounts/logout/"):
        answer = client.get(address)
        assert answer.status_code == 405, address
        assert "POST" in answer.headers["Allow"]
        assert "only takes what a form sends" in answer.content.decode(), address
        assert 'class="button button-main"' in answer.content.decode(), address


def test_staff_without_a_tenant_are_led_to_the_administration(client, maria):
    client.force_login(maria)
    assert 'class="button button-main" href="/admin/"' not in client.get("/").content.decode()
    maria.is_staff = True
    maria.save()
    assert 'class="button button-main" href="/admin/"' in client.get("/").content.decode()
