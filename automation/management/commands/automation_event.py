"""Posts a named event to a tenant's rules, as an integrator's program would."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Model

from automation.extend import DifferentBody, by_api, model, post_event
from automation.management.arguments import add_json, add_tenant, object_in, write_json
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
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the id of the event; a bad argument is said in one line, and nothing is written."""
        tenant = Tenant.objects.filter(slug=options["tenant"], closed_at=None).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        data = object_in(options["data"], "--data", example='{"minutes": 5}')
        with acting_for(tenant.pk), by_api():
            record = _record(options["record"]) if options["record"] else None
            try:
                event_id = post_event(tenant, options["name"], record=record, data=data, key=options["key"])
            except (ValueError, LookupError, DifferentBody) as error:
                raise CommandError(str(error)) from error
        if options["json"]:
            write_json(self.stdout, {"event": event_id})
            return
        self.stdout.write(str(event_id))


def _record(text: str) -> Model:
    """The tenant's record that "model:id" names; another tenant's is as if it didn't exist."""
    name, _colon, key = text.partition(":")
    try:
        entry = model(name)
    except LookupError as error:
        raise CommandError(str(error)) from error
    record = entry.model._default_manager.filter(pk=key).first() if key.isdecimal() else None
    if record is None:
        raise CommandError(f"There is no record {text!r} of this tenant.")
    return record
