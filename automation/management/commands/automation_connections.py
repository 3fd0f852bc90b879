"""Lists a tenant's connections with their health, and switches one on again that is down or off."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from automation.core.breaker import CLOSED
from automation.engine import connections
from automation.management.arguments import add_reason
from automation.management.naming import connection_named
from automation.management.verbs import VerbCommand
from automation.models import Connection

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_connections --tenant acme --switch-on pager`; twice does nothing more."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """Which one, where something is to be done."""
        parser.add_argument("--switch-on", metavar="NAME", help="use it again at once; what waits for it goes on")
        add_reason(parser)

    def rehearse(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Lists, with what would be switched on; what waits for a connection may be too much to be tried."""
        chosen = connection_named(options["switch_on"]).name if options["switch_on"] is not None else None
        return [one | {"would_switch_on": one["name"] == chosen and one["breaker"] != CLOSED} for one in _listed()]

    def act(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Switches on, then lists."""
        if options["switch_on"] is not None:
            connections.switch_on(connection_named(options["switch_on"]).pk, options["reason"])
        return _listed()

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each."""
        for one in answer:
            error = f" Last error: {one['error']}" if one["breaker"] != "closed" else ""
            would = " Would be switched on." if one.get("would_switch_on") else ""
            yield f"{one['name']} ({one['kind']}): {one['sentence']}{error}{would}"
        if not answer:
            yield "The tenant has no connections."


def _listed() -> list[dict[str, Any]]:
    found = []
    for one in Connection.objects.order_by("name"):
        health = connections.health(one)
        about = {"name": one.name, "kind": one.kind, "concurrency": one.concurrency}
        found.append(about | asdict(health) | {"sentence": health.sentence})
    return found
