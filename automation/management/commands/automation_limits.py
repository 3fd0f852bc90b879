"""Shows a tenant's limits with their use."""

from collections.abc import Iterable
from typing import Any

from automation.engine.usage import usage
from automation.management.verbs import VerbCommand
from tenants.context import current_tenant

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_limits --tenant acme`."""

    help = f"{ABOUT} {__doc__}"

    def act(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """Each limit with its use."""
        return [
            {"name": use.name, "used": use.used, "limit": use.limit, "percent": use.percent, "beyond": use.beyond}
            for use in usage(current_tenant())
        ]

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each."""
        for use in answer:
            yield f"{use['name']}: {use['used']} of {use['limit']} ({use['percent']} %). Beyond it: {use['beyond']}"
