"""The demo's tenants: what is there, and that filling twice changes nothing."""

import pytest
from django.apps import apps
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db import connection

from automation.models import Connection, Rule
from northwind.seed.files import SLUGS, rules_of, tenant_file
from northwind.seed.fill import PASSWORD, ForeignDatabaseError, fill, logins
from tenants.context import acting_for
from tenants.models import Membership, Tenant
from tests.factories import TenantFactory

pytestmark = pytest.mark.django_db

SERVERS = {"pager": "http://127.0.0.1:8101", "webhooks": "http://127.0.0.1:8102", "sms": "http://127.0.0.1:8103"}


def every_row() -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables, as they are stored."""
    with connection.cursor() as cursor:
        found = {}
        for model in apps.get_models():
            cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" t ORDER BY 1')
            found[model._meta.label] = cursor.fetchall()
        return found


def test_filling_twice_changes_nothing():
    assert fill(SERVERS) == list(SLUGS)
    before = every_row()
    assert fill(SERVERS) == []
    assert every_row() == before


def test_connections_follow_receivers_that_moved_and_nothing_else_changes():
    fill(SERVERS)
    before = every_row()
    fill(SERVERS | {"pager": "http://127.0.0.1:9999"})
    after = every_row()
    assert {label for label in after if after[label] != before[label]} == {"automation.Connection"}
    with acting_for(Tenant.objects.get(slug="acme").pk):
        assert Connection.objects.get(name="pager").endpoint == "http://127.0.0.1:9999/v2/enqueue"


def test_a_connection_that_somebody_gave_another_address_is_left_alone():
    fill(SERVERS)
    with acting_for(Tenant.objects.get(slug="acme").pk):
        Connection.objects.filter(name="pager").update(endpoint="https://events.example.com/v2/enqueue")
        fill(SERVERS | {"pager": "http://127.0.0.1:9999"})
        assert Connection.objects.get(name="pager").endpoint == "https://events.example.com/v2/enqueue"


@pytest.mark.parametrize("slug", SLUGS)
def test_every_rule_is_live_in_its_order(slug):
    fill(SERVERS)
    with acting_for(Tenant.objects.get(slug=slug).pk):
        live = Rule.objects.filter(on=True, published__isnull=False).order_by("position")
        assert [rule.name for rule in live] == [rule["name"] for rule in rules_of(slug)]


def test_each_tenant_has_people_of_every_role_who_can_log_in():
    fill(SERVERS)
    for slug in SLUGS:
        with acting_for(Tenant.objects.get(slug=slug).pk):
            roles = set(Membership.objects.values_list("role", flat=True))
        assert roles == {"viewer", "agent", "editor", "publisher", "admin"}
        assert {login.role for login in logins() if login.tenant == slug} == roles
    assert all(authenticate(username=login.name, password=PASSWORD) for login in logins()[::5])


def test_a_customer_of_each_plan_is_there():
    plans = {customer["plan"] for slug in SLUGS for customer in tenant_file(slug)["customers"]}
    assert plans == {"free", "silver", "gold"}


def test_a_database_of_somebody_else_is_refused():
    TenantFactory(slug="other")
    with pytest.raises(ForeignDatabaseError, match="other people's data"):
        fill(SERVERS)
    assert not User.objects.exists()
