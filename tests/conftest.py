"""Gives tests their database, and the programs that tests start the same one."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, TransactionTestCase
from emptying import empty_database
from pytest_django import DjangoDbBlocker

from northwind import database

pytest_plugins = ["report"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> Iterator[None]:
    """Have a server before the first test that needs it, without the test database that a killed run left behind."""
    database.ensure()
    name = _test_name()
    with psycopg.connect(database.renamed(database.address(), "postgres"), autocommit=True) as server:
        # Held to the end: two runs at once would take the database away from each other.
        if server.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name]).fetchone() != (True,):
            pytest.exit(
                f"Another run of the tests uses {name}: wait for its end.", returncode=pytest.ExitCode.USAGE_ERROR
            )
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Name the test database in DATABASE_URL, and end what still uses it before it is dropped."""
    before = os.environ[database.VARIABLE]
    os.environ[database.VARIABLE] = database.renamed(before, str(connection.settings_dict["NAME"]))
    yield
    os.environ[database.VARIABLE] = before
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """What costs each of many tests time and isn't what any of them is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda self: empty_database())
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1)
        patch.setattr(settings, "WHITENOISE_AUTOREFRESH", True, raising=False)  # no list of all files for each client
        yield


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """Return the URL of the test database, for a test that starts programs: they see what it commits."""
    return os.environ[database.VARIABLE]


def _test_name() -> str:
    return str(connection.settings_dict["TEST"]["NAME"] or f"test_{connection.settings_dict['NAME']}")


@pytest.fixture
def staff(client: Client) -> Client:
    """Somebody of the installation's staff who may do everything, logged in."""
    client.force_login(User.objects.create_superuser("root", first_name="Rosa", last_name="Staff"))
    return client
