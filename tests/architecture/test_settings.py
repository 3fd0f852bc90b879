"""The settings are safe where the product is deployed, and need nothing where it is tried."""

import os
import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

KEY = "k3y-that-is-long-enough-for-a-deployment-and-has-many-different-characters"
DEPLOYED = {
    "HTTPS": "on",
    "SECRET_KEY": KEY,
    "SECRET_ENCRYPTION_KEYS": "bmV2ZXItdXNlZC1pbi1hLWRlcGxveW1lbnQtb2YtdXM=",
    "ALLOWED_HOSTS": "desk.example.com",
}


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "DATABASE_URL"}}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_deployment_has_nothing_to_warn_of():
    done = manage("check", "--deploy", "--fail-level", "WARNING", **DEPLOYED)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["SECRET_KEY", "SECRET_ENCRYPTION_KEYS"])
def test_a_deployment_without_its_own_keys_does_not_start(missing):
    done = manage("check", **{name: value for name, value in DEPLOYED.items() if name != missing})
    assert done.returncode != 0
    assert missing in done.stderr


@pytest.mark.parametrize("name", ["AUTOMATION_LOOP_GUARD", "AUTOMATION_ALLOW_LOOPBACK", "AUTOMATION_TIME_SCALE"])
def test_a_deployment_can_not_switch_a_protection_off(name):
    done = manage("check", **DEPLOYED, **{name: "0"})
    assert done.returncode != 0
    assert f"{name} is for the demo" in done.stderr


def test_the_engines_settings_come_from_the_environment_with_their_types():
    code = "from automation.conf import load; c = load(); print(c.threads, c.lease, c.loop_guard)"
    experiment = {"AUTOMATION_LOOP_GUARD": "off", "AUTOMATION_TESTS": "1"}
    done = manage("shell", "-v", "0", "-c", code, AUTOMATION_THREADS="3", AUTOMATION_LEASE="90", **experiment)
    assert done.stdout.split() == ["3", "90.0", "False"]
    assert manage("check", AUTOMATION_THREADS="many").returncode != 0


def test_only_the_lab_and_tests_switch_a_protection_off():
    done = manage("check", AUTOMATION_IDEMPOTENCY_KEYS="off")
    assert done.returncode != 0
    assert "AUTOMATION_IDEMPOTENCY_KEYS is for the lab and tests" in done.stderr
    assert manage("check", AUTOMATION_IDEMPOTENCY_KEYS="off", AUTOMATION_LAB="1").returncode == 0


NOWHERE = "postgresql://ana:s3cret@127.0.0.1:1/desk"


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DATABASE_URL": "mysql://ana:s3cret@db/desk"}, "DATABASE_URL has to be the address of a PostgreSQL"),
        ({"DATABASE_URL": "desk"}, "DATABASE_URL has to be the address of a PostgreSQL"),
        ({"DATABASE_URL": NOWHERE}, "The database can't be reached"),
        ({"WORKERS": "abc"}, "WORKERS has to be a whole number, not 'abc'."),
        ({"AUTOMATION_LEASE": "long"}, "AUTOMATION_LEASE has to be a number, not 'long'."),
    ],
)
@pytest.mark.parametrize("command", ["run_workers", "migrate"])
def test_what_is_wrong_with_the_environment_is_said_in_one_line(command, variables, says):
    done = manage(command, **variables)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.strip()]
    assert says in line
    assert "s3cret" not in line


def test_the_logs_are_one_json_object_a_line_where_that_is_wanted():
    code = "import logging; logging.getLogger('x').warning('a line', extra={'ticket': 7})"
    line = manage("shell", "-v", "0", "-c", code, LOG_FORMAT="json").stderr
    assert '"event": "a line"' in line
    assert '"ticket": 7' in line
    assert "warning" in manage("shell", "-v", "0", "-c", code).stderr
