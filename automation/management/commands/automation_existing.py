"""Has a rule run for the records that it concerns already, at a pace, says how far it has come, or stops it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine import rules
from automation.engine.operate import Refused
from automation.management.arguments import add_json, add_reason, add_tenant, write_json
from automation.management.naming import a_minute, rule_named, tenant_named
from automation.management.verbs import person
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_existing RULE --tenant acme --rate 60/m` begins, `--stop` ends it."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, and what to do."""
        add_tenant(parser)
        parser.add_argument("rule", help="its number or name")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--rate", metavar="RATE", help="run for them this fast, 60/m; also changes the rate")
        what.add_argument("--stop", action="store_true", help="leave the others alone")
        add_reason(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Does what it is told, and prints how far it has come."""
        with acting_for(tenant_named(options["tenant"]).pk, person()):
            rule, rate = rule_named(options["rule"]), a_minute(options["rate"])
            try:
                if rate is not None:
                    rules.take_up(rule.pk, rate=rate, reason=options["reason"])
                if options["stop"]:
                    rules.stop_taking_up(rule.pk, reason=options["reason"])
            except Refused as refusal:
                raise CommandError(str(refusal)) from refusal
            state = rules.TakingUp.of(rules.find(rule.pk))
        if options["json"]:
            write_json(self.stdout, state.kept() if state else None)
        elif state is None:
            self.stdout.write("It takes up no records.")
        else:
            self.stdout.write(
                f"{state.posted} records so far, {state.rate:g} a minute; seen to up to number {state.last}"
                f" of {state.until}."
            )
