"""Every text that is stored is erased with a person, or somebody has said why it can't name one."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, connection, models, transaction

from automation.catalog.mentions import may_mention
from automation.engine.notice_mails import compose
from automation.engine.retention import elsewhere
from automation.engine.retention.elsewhere import columns_with_mentions
from automation.engine.retention.tables import owned
from automation.extend import erase
from automation.models import Backtest, BulkJob, ConnectionCall, DeadLetter, Notice, Pause
from automation.store import clock
from northwind.helpdesk.models import Ticket
from northwind.imports.models import ImportedRow, ImportJob
from tenants.audit import record
from tenants.models import AuditEntry
from tests.engine.world import World, make_world, step

pytestmark = pytest.mark.django_db
NAME, MAIL = "Gold Person", "gold@person.example"
TEXTS = (models.CharField, models.TextField, models.JSONField, ArrayField, models.BinaryField)

# By runs and events, each in its own way: engine/retention/erase.py.
OF_RUNS = {
    "automation.event": {"facts", "actor"},
    "automation.stepexecution": {"input", "output", "error"},
    "automation.attempt": {"request", "answer"},
    "automation.deadletter": {"snapshot", "error"},
    "admin.logentry": {"object_repr", "change_message"},
}
CODE = "a word of the program's own"
AUTHOR = "what a rule's author wrote: the command lists such rules, and they are edited by hand"
PRODUCT = "the product's own record: it is deleted or emptied there"
SETTING = "a setting that an admin of the tenant entered, and changes"
LOGIN = "a login of the installation, which may belong to several tenants: deleted in the Django admin"
QUEUE = "the task queue's own: names of functions and processes, no values of a tenant"
KEY = "what the host or an importer knows an event by: another one would let it happen again"
NAMES_NOBODY: dict[str, dict[str, str]] = {
    "admin.logentry": {"object_id": "a number"},
    "auth.group": {"name": LOGIN},
    "auth.permission": {"name": CODE, "codename": CODE},
    "auth.user": dict.fromkeys(["password", "username", "first_name", "last_name", "email"], LOGIN),
    "automation.attempt": {"outcome": CODE},
    "automation.backtest": {"definition": AUTHOR, "state": CODE, "place": "numbers"},
    "automation.bulkjob": {"verb": CODE, "state": CODE},
    "automation.connection": {
        **dict.fromkeys(["name", "endpoint", "settings", "allowed_hosts", "secret_encrypted"], SETTING),
        **dict.fromkeys(["kind", "breaker"], CODE),
    },
    "automation.connectioncall": {"record": "a model and a number"},
    "automation.deadletter": {"reason": CODE},
    "automation.drip": {"scope": CODE},
    "automation.event": {
        **dict.fromkeys(["kind", "change", "model", "source", "path", "name"], CODE),
        **dict.fromkeys(["batch", "dedupe_key"], KEY),
        "body_sha256": "a digest",
    },
    "automation.installation": {"place": "numbers of the database server"},
    "automation.lane": {"pool": SETTING},
    "automation.notice": {
        "kind": CODE,
        "subject": "a kind and a number, or a digest",
        "period": "a time",
        "mailed": "numbers and words of the program's own",
    },
    "automation.ownaddress": {"address": SETTING},
    "automation.pause": {"scope": CODE, "level": CODE, "keep": CODE},
    "automation.retention": {"removed": "numbers by table"},
    "automation.rule": {"name": AUTHOR, "off_mode": CODE, "taking_up": "numbers"},
    "automation.ruledraft": {"definition": AUTHOR},
    "automation.ruleversion": {"definition": AUTHOR, "note": AUTHOR, "sha256": "a digest"},
    "automation.run": dict.fromkeys(["origin", "state", "reason", "model", "forked_from_step"], CODE),
    "automation.servedbatch": {"batch": KEY},
    "automation.stepexecution": {
        **dict.fromkeys(["path", "kind", "action", "state", "reason", "effect_state"], CODE),
        "connection": SETTING,
        **dict.fromkeys(["idempotency_key", "request_sha256"], "a digest"),
    },
    "automation.sweep": {"name": CODE},
    "automation.timer": {"kind": CODE, "state": CODE},
    "automation.worker": dict.fromkeys(["pool", "release", "host"], "a process of the installation"),
    "contenttypes.contenttype": {"app_label": CODE, "model": CODE},
    "crm.company": dict.fromkeys(["name", "industry"], PRODUCT),
    "crm.lead": dict.fromkeys(["name", "email", "phone", "tags"], PRODUCT),
    "crm.leadnote": dict.fromkeys(["author_name", "body"], PRODUCT),
    "django_q.failure": dict.fromkeys(["id", "name", "func", "hook", "group", "cluster"], QUEUE),
    "django_q.ormq": dict.fromkeys(["key", "payload"], QUEUE),
    "django_q.schedule": dict.fromkeys(
        ["name", "func", "hook", "args", "kwargs", "cron", "task", "cluster", "intended_date_kwarg"], QUEUE
    ),
    "django_q.success": dict.fromkeys(["id", "name", "func", "hook", "group", "cluster"], QUEUE),
    "django_q.task": dict.fromkeys(["id", "name", "func", "hook", "group", "cluster"], QUEUE),
    "helpdesk.comment": dict.fromkeys(["author_name", "body"], PRODUCT),
    "helpdesk.customer": dict.fromkeys(["name", "email", "phone", "language"], PRODUCT),
    "helpdesk.task": {"title": PRODUCT},
    "helpdesk.ticket": dict.fromkeys(["subject", "description", "tags"], PRODUCT),
    "imports.importjob": {"kind": CODE, "batch": KEY, "digest": "a digest", "options": CODE},
    "imports.importedrow": {"outcome": CODE},
    "sessions.session": dict.fromkeys(["session_key", "session_data"], "a login's session, which ends by itself"),
    "tenants.auditentry": {
        "actor_name": "who did it: the audit keeps what people of the tenant did",
        "verb": CODE,
        "target": "a kind and a number",
    },
    "tenants.group": {"name": SETTING},
    "tenants.membership": {"language": SETTING},
    "tenants.tenant": dict.fromkeys(["name", "slug", "time_zone", "language"], SETTING),
}


def texts() -> dict[str, set[str]]:
    """Every column of the database that holds texts or JSON, but for those that can only be one of some words."""
    found: dict[str, set[str]] = {}
    for model in apps.get_models(include_auto_created=True):
        columns = [field for field in model._meta.concrete_fields if isinstance(field, TEXTS) and not field.choices]
        if columns:
            found[model._meta.label_lower] = {field.name for field in columns}
    return found


def test_every_text_column_is_erased_or_said_to_name_nobody() -> None:
    """A new column fails here: have it erased (`may_mention`, or OURS), or say above why it names nobody."""
    elsewhere = {model._meta.label_lower: set(columns) for model, columns in columns_with_mentions().items()}
    told = {
        label: OF_RUNS.get(label, set()) | elsewhere.get(label, set()) | set(NAMES_NOBODY.get(label, {}))
        for label in {*OF_RUNS, *elsewhere, *NAMES_NOBODY}
    }
    assert told == texts()


def fill(world: World, said: str) -> None:
    """A row of every table in which the person may be mentioned elsewhere, with all of these texts."""
    hook = world.connection()
    rule = world.rule("Tell", step("n", "add_note", text="x"))
    with world.acting():
        hook.last_error = said
        hook.save()
        ConnectionCall.objects.create(connection=hook, at=clock.now(), ok=False, error=said)
        Backtest.objects.create(
            rule=rule, definition={}, since=clock.now(), most=1, result={"why": [said]}, error=said, asked_by=said
        )
        BulkJob.objects.create(
            verb="retry",
            filters={"error": said},
            rate=1,
            until_id=1,
            next_at=clock.now(),
            reason=said,
            actor=said,
            refusals={said: 1},
        )
        DeadLetter.objects.create(reason="exhausted", snapshot={}, resolution=said[:40], actor=said)
        Notice.objects.create(
            kind="x", subject="x", period="x", title=said, text=said, error=said, said={"de": [said, said]}
        )
        Pause.objects.create(
            scope="rule",
            tenant=world.tenant,
            subject_id=rule.pk,
            reason=said,
            actor=said,
            resumed_by=said,
            ended_by=said,
        )
        job = ImportJob.objects.create(kind="tickets", batch="b", file_name=said, digest="0" * 64)
        ImportedRow.objects.create(job=job, number=1, line=2, outcome="rejected", problems=[{"message": said}])
        record("customer.changed", "x:1", tenant_id=world.tenant.pk, reason=said, before={"a": said}, after=[said])


def left(word: str) -> list[str]:
    """Where a word is still to be found, of all columns that aren't said to name nobody."""
    found = []
    for label, columns in texts().items():
        for column in sorted(columns - set(NAMES_NOBODY.get(label, {}))):
            model = apps.get_model(label)
            table, name = model._meta.db_table, model._meta.get_field(column).column
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT count(*) FROM {table} WHERE {name}::text ILIKE %s", [f"%{word}%"])
                found += [f"{label}.{column}"] * bool(cursor.fetchone()[0])
    return found


def test_nothing_is_left_of_a_person_anywhere() -> None:
    world = make_world()
    customer = world.customer(name=NAME, email=MAIL)
    fill(world, f"{NAME} wrote")
    rows = {model: model._base_manager.count() for model in columns_with_mentions()}
    assert set(rows) <= {table.model for table in owned()}
    assert all(rows.values())  # so that what follows shows something of each

    with world.acting():
        counted = erase("helpdesk.customer", customer.pk, dry_run=True).changed
        assert "imports.importjob.file_name" in left(NAME)
        done = erase("helpdesk.customer", customer.pk)
        assert left(NAME) == []
        assert done.changed == counted
        assert erase("helpdesk.customer", customer.pk).changed == {}
        assert AuditEntry.objects.get(verb="customer.changed").after == ["[erased] wrote"]
        assert Notice.objects.get(kind="x").said == {"de": ["[erased] wrote", "[erased] wrote"]}


def test_another_tenants_texts_stay() -> None:
    world, other = make_world(), make_world()
    fill(other, f"{NAME} wrote")
    before = left(NAME)
    customer = world.customer(name=NAME, email=MAIL)
    with world.acting():
        erase("helpdesk.customer", customer.pk)
    assert left(NAME) == before


def test_the_staffs_log_forgets_what_records_of_the_tenant_were_called() -> None:
    world, other = make_world(), make_world()
    customer, ticket = world.customer(name=NAME, email=MAIL), world.ticket(subject=f"Call {NAME}")
    theirs = other.ticket(subject=f"Call {NAME}")
    for row, words in ((customer, "As it was then"), (ticket, ticket.subject), (theirs, theirs.subject)):
        LogEntry.objects.create(
            user=world.ana.user,
            content_type=ContentType.objects.get_for_model(row),
            object_id=row.pk,
            object_repr=words,
            action_flag=CHANGE,
        )
    with world.acting():
        assert erase("helpdesk.customer", customer.pk).changed["entries of the staff's log"] == 2
    said = list(LogEntry.objects.order_by("id").values_list("object_repr", flat=True))
    assert said == ["[erased]", "Call [erased]", f"Call {NAME}"]


def test_of_a_record_that_is_gone_the_staffs_log_forgets_only_what_was_this_tenants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In pages of one entry."""
    monkeypatch.setattr(elsewhere, "PAGE", 1)
    world, other = make_world(), make_world()
    customer = world.customer(name=NAME, email=MAIL)
    for each in (world, other):
        ticket = each.ticket(subject="Call")
        log = {"content_type": ContentType.objects.get_for_model(Ticket), "object_id": ticket.pk}
        LogEntry.objects.create(user=each.ana.user, object_repr=f"Call {NAME}", action_flag=CHANGE, **log)
        with each.acting():
            ticket.delete()
    with world.acting():
        counted = erase("helpdesk.customer", customer.pk, dry_run=True).changed
        done = erase("helpdesk.customer", customer.pk).changed
    assert done["entries of the staff's log"] == counted["entries of the staff's log"] == 1
    said = LogEntry.objects.order_by("id").values_list("object_repr", flat=True)
    assert list(said) == ["Call [erased]", f"Call {NAME}"]


def test_no_half_of_an_address_is_left_to_be_mailed() -> None:
    world = make_world()
    customer = world.customer(name=NAME, email=MAIL)
    with world.acting():
        addresses = [MAIL, f"not.{MAIL}", "ana@person.example"]
        Notice.objects.create(kind="x", subject="x", period="x", recipients=addresses)
        erase("helpdesk.customer", customer.pk)
        notice = Notice.objects.get(kind="x")
    assert notice.recipients == ["[erased]", "[erased]", "ana@person.example"]
    assert [mail.to for mail in compose(notice)] == [["ana@person.example"]]


def test_the_audit_changes_for_nothing_else() -> None:
    world = make_world()
    with world.acting():
        entry = record("rule.paused", "rule:12", tenant_id=world.tenant.pk, reason="Because")
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('tenants.erasing', 'on', true)")
    changes: list[dict[str, Any]] = [{"verb": "x"}, {"target": "x"}, {"actor_name": "x"}, {"at": clock.now()}]
    for change in changes:
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            AuditEntry._base_manager.filter(pk=entry.pk).update(**change)


def test_only_texts_can_be_said_to_mention_people() -> None:
    with pytest.raises(FieldDoesNotExist, match="neither a text nor JSON"):
        may_mention(Ticket, "customer")
    assert Ticket not in columns_with_mentions()
