"""Brings a deleted rule back, switched off; without one it lists those that can be brought back."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine import rules
from automation.engine.operate import Refused
from automation.management.arguments import add_reason, add_tenant, write_table
from automation.management.naming import tenant_named
from automation.management.verbs import person
from automation.models import Rule
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_undelete --tenant acme` lists, with the number of a rule it restores."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule."""
        add_tenant(parser)
        parser.add_argument("rule", nargs="?", type=int, help="its number")
        add_reason(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Lists, or restores."""
        with acting_for(tenant_named(options["tenant"]).pk, person()):
            if options["rule"] is None:
                rows = [
                    (
                        rule.pk,
                        rule.name,
                        f"{rule.deleted_at:%Y-%m-%d %H:%M}",
                        f"{rules.restorable_until(rule):%Y-%m-%d %H:%M}",
                    )
                    for rule in rules.deleted()
                ]
                if not rows:
                    self.stdout.write("No deleted rule can be brought back.")
                write_table(self.stdout, ("rule", "name", "deleted", "restorable until"), rows)
                return
            try:
                rules.undelete(options["rule"], reason=options["reason"])
            except Rule.DoesNotExist as missing:
                raise CommandError(f"There is no rule {options['rule']} of this tenant.") from missing
            except Refused as refusal:
                raise CommandError(str(refusal)) from refusal
        self.stdout.write("It is back, switched off; its runs stay cancelled.")
