"""The trial of each seeded rule shows it whole, and touches nothing: no row of any table, and no server."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from loopback_servers import Server, running

from northwind.helpdesk.models import Ticket
from northwind.seed.fill import fill
from tenants.context import acting_for
from tenants.models import Tenant
from tests.trial.seeded import RULES, SCENES, prepare, try_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[dict[str, Server]]:
    """The real receivers, which nothing is to reach."""
    folder = tmp_path_factory.mktemp("ledgers")
    with ExitStack() as stack:
        yield {name: stack.enter_context(running(name, folder)) for name in ("pager", "webhooks", "sms", "smtp")}


@pytest.fixture
def demo(transactional_db, servers, settings) -> None:
    """The seeded tenants, pointing at the receivers."""
    settings.AUTOMATION_ALLOW_LOOPBACK = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", servers["smtp"].port
    fill({name: server.url for name, server in servers.items()})


def every_row() -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables, as they are stored."""
    with connection.cursor() as cursor:
        found = {}
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" t ORDER BY 1')
            found[model._meta.label] = cursor.fetchall()
        return found


def arrived(servers: dict[str, Server]) -> int:
    return sum(len(server.ledger.read_text().splitlines()) for server in servers.values() if server.ledger.exists())


def test_there_is_a_scene_for_every_seeded_rule():
    assert set(SCENES) == set(RULES)


def test_the_trial_of_each_seeded_rule_touches_nothing(demo, servers):
    for slug, name in RULES:
        prepare(slug, name)
    before, sent = every_row(), 0
    for slug, name in RULES:
        report = try_rule(slug, name)
        assert report.result == "would_run", (name, report.sentence)
        outside = [step for step in report.steps if step.requests]
        sent += sum(len(step.requests) for step in outside)
        assert {step.state for step in outside} <= {"succeeded"}
    assert sent == 8
    assert every_row() == before
    assert arrived(servers) == 0


def test_a_mail_is_rendered_in_full(demo):
    report = try_rule("fabrikam", "Welcome leads from Facebook")
    mail, message = (step.requests[0] for step in report.steps if step.requests)
    assert (mail.kind, mail.to, mail.subject) == ("mail", "kiri@coralcoast.example", "Welcome, Kiri Walker")
    assert mail.body.startswith("Dear Kiri Walker,\n\nthank you")
    assert message.body.startswith("To=%2B61400555133&From=%2B61")
    assert "fabrikam-demo-token" not in json.dumps(report.to_json())


def test_the_command_prints_it(demo, capsys):
    with acting_for(Tenant.objects.get(slug="acme").pk):
        ticket = Ticket.objects.get(subject="Card refused twice")
    words = ["automation_trial", "--tenant", "acme", "Ask the warehouse", "--record", f"helpdesk.ticket:{ticket.pk}"]
    call_command(*words)
    said = capsys.readouterr().out
    assert "The rule would run to its end." in said
    assert '"question":"Card refused twice"' in said
    assert "Nothing was sent or changed." in said
    call_command(*words, "--json", "--answer", "ask=fail")
    assert json.loads(capsys.readouterr().out)["gate"] == "rejected"


UNKNOWN = [
    (["--tenant", "nobody", "x", "--event", "1"], "no tenant 'nobody'"),
    (["--tenant", "acme", "x", "--event", "1"], "no rule 'x'"),
    (["--tenant", "acme", "Ask the warehouse", "--event", "999999"], "There is no event 999999"),
    (["--tenant", "acme", "Ask the warehouse", "--record", "ticket"], "such as helpdesk.ticket:12"),
    (["--tenant", "acme", "Ask the warehouse", "--record", "helpdesk.ticket:999999"], "no helpdesk.ticket 999999"),
    (["--tenant", "acme", "Ask the warehouse", "--number", "9", "--event", "1"], "no version 9"),
    (["--tenant", "acme", "--event", "1"], "Name a rule"),
]


def test_what_does_not_exist_is_said_in_a_sentence(demo, tmp_path):
    for words, said in UNKNOWN:
        with pytest.raises(CommandError, match=said):
            call_command("automation_trial", *words)
    facts = Path(tmp_path / "facts.json")
    facts.write_text('{\n  "snapshot": nothing\n}')
    with pytest.raises(CommandError, match="line 2, column 15"):
        call_command("automation_trial", "--tenant", "acme", "Ask the warehouse", "--facts", str(facts))
