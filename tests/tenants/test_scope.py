"""Rows of a tenant are seen and written only while acting for it."""

import asyncio
import threading

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from tenants.audit import record
from tenants.context import (
    NOBODY,
    Actor,
    NoTenantError,
    OtherTenantError,
    acting_as,
    acting_for,
    current_actor,
    current_tenant,
    every_tenant,
)
from tenants.models import AuditEntry, Group, GroupMember, Membership, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.create(name="Acme Retail", slug="acme")


@pytest.fixture
def contoso() -> Tenant:
    return Tenant.objects.create(name="Contoso", slug="contoso")


def group(tenant: Tenant, name: str = "Support") -> Group:
    with acting_for(tenant.pk):
        return Group.objects.create(name=name)


def test_asking_for_rows_without_a_tenant_is_an_error():
    with pytest.raises(NoTenantError):
        Group.objects.all()
    with pytest.raises(LookupError):
        current_tenant()


def test_each_tenant_sees_its_own_rows_and_staff_see_all(acme, contoso):
    ours, theirs = group(acme), group(contoso)
    with acting_for(acme.pk):
        assert list(Group.objects.all()) == [ours]
        assert not Group.objects.filter(pk=theirs.pk).exists()
        with every_tenant():
            assert set(Group.objects.all()) == {ours, theirs}
            with acting_for(contoso.pk):
                assert list(Group.objects.all()) == [theirs]
        assert list(Group.objects.all()) == [ours]


def test_a_new_row_gets_the_tenant_acted_for(acme):
    with acting_for(acme.pk):
        assert Group(name="Sales").tenant_id is None
        assert Group.objects.create(name="Sales").tenant == acme
        assert Group.objects.bulk_create([Group(name="Field")])[0].tenant_id == acme.pk
        assert Group.objects.get_or_create(name="Night")[0].tenant_id == acme.pk


def test_another_tenants_row_can_neither_be_saved_nor_deleted_nor_made(acme, contoso):
    theirs = group(contoso)
    with acting_for(acme.pk):
        for write in (
            theirs.save,
            theirs.delete,
            lambda: Group.objects.create(tenant=contoso, name="x"),
            lambda: Group.objects.bulk_create([Group(tenant=contoso, name="x")]),
            lambda: record("group.renamed", "group:1", tenant_id=contoso.pk),
        ):
            with pytest.raises(OtherTenantError):
                write()


def test_a_row_never_changes_its_tenant(acme, contoso):
    with acting_for(acme.pk), pytest.raises(ValueError, match="never changes its tenant"):
        Group.objects.update(tenant=contoso)


def test_with_the_scope_lifted_a_new_row_must_name_its_tenant(acme):
    with every_tenant():
        with pytest.raises(NoTenantError):
            Group.objects.create(name="Support")
        assert Group.objects.create(tenant=acme, name="Support").pk


def test_the_scope_comes_back_after_an_error(acme):
    with acting_for(acme.pk):
        with pytest.raises(ZeroDivisionError), every_tenant():
            raise ZeroDivisionError
        assert current_tenant() == acme.pk
    with pytest.raises(NoTenantError):
        current_tenant()


def test_a_new_thread_starts_without_a_scope_and_tasks_keep_theirs_apart(acme, contoso):
    seen: list[object] = []

    def look() -> None:
        try:
            seen.append(current_tenant())
        except NoTenantError:
            seen.append("none")

    with acting_for(acme.pk, Actor("person", 1, "Ana")):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == ["none"]

    async def work(tenant: Tenant) -> tuple[int, int]:
        with acting_for(tenant.pk):
            before = current_tenant()
            await asyncio.sleep(0)
            return before, current_tenant()

    async def both() -> list[tuple[int, int]]:
        return list(await asyncio.gather(work(acme), work(contoso)))

    assert asyncio.run(both()) == [(acme.pk, acme.pk), (contoso.pk, contoso.pk)]


def test_the_actor_is_nobody_until_someone_acts(acme):
    ana, robot = Actor("person", 1, "Ana"), Actor("system", None, "Rule “Urgent”")
    assert current_actor() is NOBODY
    with acting_for(acme.pk, ana):
        with acting_as(robot):
            assert current_actor() == robot
        with acting_for(acme.pk):
            assert current_actor() == ana
    assert current_actor() is NOBODY


def test_the_database_refuses_a_group_of_people_of_another_tenant(acme, contoso):
    ours = group(acme)
    user = User.objects.create(username="ana")
    with acting_for(contoso.pk):
        stranger = Membership.objects.create(user=user)

    @transaction.atomic
    def mix() -> None:
        GroupMember(tenant=acme, group=ours, member=stranger).save()
        connection.check_constraints()

    with pytest.raises(IntegrityError, match="tenants_groupmember_member_id_tenant_fk"):
        mix()


def test_an_audit_entry_is_written_once_and_never_changed(acme):
    with acting_for(acme.pk, Actor("person", 7, "Ana")):
        entry = record("rule.paused", "rule:12", tenant_id=acme.pk, reason="It loops", after={"paused": True})
        read = AuditEntry.objects.get()
        assert (read.actor_id, read.actor_name, read.reason, read.after) == (7, "Ana", "It loops", {"paused": True})
        assert read.at == entry.at
        entry.verb = "rule.started"
        with pytest.raises(Exception, match="can't be changed"):
            entry.save()
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            AuditEntry.objects.update(verb="x")


def test_an_audit_entry_goes_with_its_transaction(acme):
    def act() -> None:
        with transaction.atomic():
            record("rule.paused", "rule:12", tenant_id=acme.pk)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        act()
    with every_tenant():
        assert not AuditEntry.objects.exists()
