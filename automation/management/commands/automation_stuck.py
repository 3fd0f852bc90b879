"""Lists runs that don't get on, with the reason and the verb that helps; of one tenant or of all."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from automation.engine.stuck import find
from automation.management.arguments import at_least
from automation.management.naming import tenant_named
from automation.management.verbs import VerbCommand, person
from tenants.context import acting_for
from tenants.models import Tenant

ABOUT = __doc__

TEN_YEARS = 5_256_000.0  # minutes


class Command(VerbCommand):
    """`manage.py automation_stuck --minutes 5`; exit code 0 also where some are found."""

    help = f"{ABOUT} {__doc__}"
    needs_tenant = False

    def add_own(self, parser: CommandParser) -> None:
        """How long something must have been due, and how many are listed."""
        parser.add_argument(
            "--minutes",
            type=at_least(0, float, most=TEN_YEARS),
            default=5.0,
            help="due for longer than this (default 5)",
        )
        parser.add_argument(
            "--limit", type=at_least(1, most=10_000), default=200, help="of each kind and tenant (default 200)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Looks through the tenant, or through one tenant after the other."""
        tenants = [tenant_named(options["tenant"])] if options["tenant"] else Tenant.objects.order_by("id")
        found: list[dict[str, Any]] = []
        for tenant in tenants:
            with acting_for(tenant.pk, person()):
                stuck = find(limit=options["limit"], longer_than=timedelta(minutes=options["minutes"]))
            found += [{"tenant": tenant.slug, **asdict(one)} for one in stuck]
        self.tell(found, options)

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each."""
        for one in answer:
            record = f" {one['model']}:{one['record']}" if one["model"] else ""
            step = f" step {one['step']}" if one["step"] else ""
            yield (
                f"{one['tenant']}: run {one['run_id']} ({one['rule_name']}{record}) {one['state']}{step}"
                f" since {one['since']:%Y-%m-%d %H:%M:%S}: {one['why']}. {one['sentence']} Helps: {one['verb']}"
            )
        if not answer:
            yield "Nothing is stuck."
