"""Posts a named event to a tenant's rules, as an integrator's program would."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Model

from automation.engine import rules
from automation.engine.ruleset import compiled
from automation.extend import DifferentBody, by_api, model, post_event
from automation.management.arguments import add_dry_run, add_json, add_tenant, object_in, write_json
from automation.management.naming import record_named, tenant_named
from automation.management.verbs import NOTHING_CHANGED
from tenants.context import acting_for
from tenants.models import Tenant

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_event sla.missed --tenant acme --record helpdesk.ticket:12 --data '{"minutes": 5}'`."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose event, its name, and what is known about it."""
        add_tenant(parser)
        parser.add_argument("name", help="of the event, as rules listen to it")
        parser.add_argument("--record", metavar="MODEL:ID", help="what it is about, such as helpdesk.ticket:12")
        parser.add_argument(
            "--data", metavar="JSON", default="{}", help="an object that conditions read as event.<name>"
        )
        parser.add_argument("--key", help="the same key twice is one event")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the id of the event; a bad argument is said in one line, and nothing is written."""
        tenant = tenant_named(options["tenant"])
        if not tenant.is_open:
            raise CommandError(f"{tenant.slug} is closed: its rules judge nothing.")
        data = object_in(options["data"], "--data", example='{"minutes": 5}')
        with acting_for(tenant.pk), by_api(), transaction.atomic():
            record = _record(options["record"]) if options["record"] else None
            try:
                event_id = post_event(tenant, options["name"], record=record, data=data, key=options["key"])
            except (ValueError, LookupError, DifferentBody) as error:
                raise CommandError(str(error)) from error
            transaction.set_rollback(options["dry_run"])
        if options["dry_run"]:
            self.stderr.write(NOTHING_CHANGED)
            self._would(_rules(tenant, options["name"], record), as_json=options["json"])
        elif options["json"]:
            write_json(self.stdout, {"event": event_id})
        else:
            self.stdout.write(str(event_id))

    def _would(self, heard: list[dict[str, Any]], *, as_json: bool) -> None:
        if as_json:
            write_json(self.stdout, {"event": None, "rules": heard})
            return
        for one in heard:
            self.stdout.write(f"{one['name']} (rule {one['rule']}) would judge it.")
        if not heard:
            self.stdout.write("No rule listens to such an event.")


def _rules(tenant: Tenant, name: str, record: Model | None) -> list[dict[str, Any]]:
    """The rules that listen to an event of that name, about that kind of record."""
    found = []
    for rule in rules.live_rules(tenant.pk):
        spec = compiled(rule.published, rule).spec if rule.published is not None else None
        if spec is None or spec.trigger.kind != "custom_event" or spec.trigger.name != name:
            continue
        if record is not None and isinstance(record, model(spec.trigger.model).model):
            found.append({"rule": rule.pk, "name": rule.name})
    return found


def _record(text: str) -> Model:
    """The tenant's record that "model:id" names; another tenant's is as if it didn't exist."""
    name, number = record_named(text)
    try:
        entry = model(name)
    except LookupError as error:
        raise CommandError(str(error)) from error
    record = entry.model._default_manager.filter(pk=number).first()
    if record is None:
        raise CommandError(f"There is no record {text!r} of this tenant.")
    return record
