"""Lists a tenant's connections with their health, and switches one on again that is down or off."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from automation.engine import connections
from automation.engine.operate import Refused
from automation.management.verbs import VerbCommand
from automation.models import Connection

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_connections --tenant acme --switch-on pager`; twice does nothing more."""

    help = f"{ABOUT} {__doc__}"

    def add_own(self, parser: CommandParser) -> None:
        """Which one, where something is to be done."""
        parser.add_argument("--switch-on", metavar="NAME", help="use it again at once; what waits for it goes on")

    def act(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Switches on, then lists."""
        if options["switch_on"] is not None:
            chosen = Connection.objects.filter(name=options["switch_on"]).first()
            if chosen is None:
                raise Refused(f"The tenant has no connection {options['switch_on']!r}.")
            connections.switch_on(chosen.pk)
        found = []
        for one in Connection.objects.order_by("name"):
            health = connections.health(one)
            about = {"name": one.name, "kind": one.kind, "concurrency": one.concurrency}
            found.append(about | asdict(health) | {"sentence": health.sentence})
        return found

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each."""
        for one in answer:
            error = f" Last error: {one['error']}" if one["breaker"] != "closed" else ""
            yield f"{one['name']} ({one['kind']}): {one['sentence']}{error}"
        if not answer:
            yield "The tenant has no connections."
