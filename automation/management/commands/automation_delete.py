"""Deletes a rule, which can be brought back for 30 days."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from automation.engine import rules
from automation.management.arguments import add_reason, add_tenant
from automation.management.naming import rule_named, tenant_named
from automation.management.verbs import person
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_delete RULE --tenant acme --reason "not used"`; `--dry-run` says what would end."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, and why."""
        add_tenant(parser)
        parser.add_argument("rule", help="its number or name")
        add_reason(parser)
        parser.add_argument("--dry-run", action="store_true", help="only say what would end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Says what ends with the rule, and deletes it."""
        with acting_for(tenant_named(options["tenant"]).pk, person()):
            goes = rules.what_goes(rule_named(options["rule"]).pk)
            self.stdout.write(
                f"Rule {goes.rule.pk} “{goes.rule.name}”: runs under way {goes.runs},"
                f" open dead letters {goes.dead_letters}."
            )
            if options["dry_run"]:
                return
            done = rules.delete(goes.rule.pk, reason=options["reason"])
        self.stdout.write(f"Deleted. Runs cancelled: {done.ended}; asked their workers to end: {done.asked}.")
        self.stdout.write(
            f"To bring it back: manage.py automation_undelete {goes.rule.pk} --tenant {options['tenant']}"
        )
