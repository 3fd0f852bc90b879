"""Tenants and their people hold only values that make sense."""

from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.forms import modelform_factory

from tenants.context import acting_for
from tenants.models import Group, Membership, Tenant
from tenants.roles import ROLES

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.create(name="Acme Retail", slug="acme", time_zone="Europe/Berlin")


def test_a_tenant_has_the_zone_that_it_names(acme):
    assert acme.zone == ZoneInfo("Europe/Berlin")
    assert str(acme) == "Acme Retail"
    assert acme.is_open


@pytest.mark.parametrize("name", ["Europe/Atlantis", "", "../../etc/passwd", "CEST"])
def test_a_zone_that_does_not_exist_is_refused(acme, name):
    acme.time_zone = name
    with pytest.raises(ValidationError) as problem:
        acme.full_clean()
    assert list(problem.value.message_dict) == ["time_zone"]


def test_a_language_that_does_not_exist_is_refused(acme):
    acme.language = "xx"
    with pytest.raises(ValidationError, match="isn't a language"):
        acme.full_clean()


def test_each_role_includes_those_before_it(acme):
    with acting_for(acme.pk):
        for held, role in enumerate(ROLES):
            member = Membership(role=role)
            assert [wanted for wanted in ROLES if member.may(wanted)] == list(ROLES[: held + 1])


def test_someone_who_left_may_nothing():
    assert not Membership(role="admin", is_active=False).may("viewer")


def test_a_role_that_does_not_exist_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="not in tuple"):
        Membership(role="admin").may("owner")


def test_a_person_is_a_member_of_a_tenant_once_and_goes_by_the_full_name(acme):
    ana = User.objects.create(username="ana", first_name="Ana", last_name="Silva")
    bo = User.objects.create(username="bo")
    with acting_for(acme.pk):
        assert str(Membership.objects.create(user=ana)) == "Ana Silva"
        assert Membership.objects.create(user=bo).name == "bo"
        with pytest.raises(IntegrityError):
            Membership.objects.create(user=ana)


def test_a_form_says_that_a_name_is_taken_in_this_tenant_only(acme):
    contoso = Tenant.objects.create(name="Contoso", slug="contoso")
    with acting_for(contoso.pk):
        Group.objects.create(name="Support")
    form = modelform_factory(Group, fields=["name"])
    with acting_for(acme.pk):
        assert form({"name": "Support"}).is_valid()
        Group.objects.create(name="Support")
        assert not form({"name": "Support"}).is_valid()
