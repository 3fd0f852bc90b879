"""Has a rule run for the records that it concerns already, at a pace, says how far it has come, or stops it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine import rules
from automation.engine.operate import Refused
from automation.management.arguments import add_json, add_tenant, tenant_of, write_json
from automation.management.naming import rule_named
from automation.management.verbs import person
from tenants.context import acting_for


class Command(BaseCommand):
    """`manage.py automation_existing RULE --tenant acme --rate 60` begins, `--stop` ends it."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, and what to do."""
        add_tenant(parser)
        parser.add_argument("rule", help="its number or name")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--rate", type=float, metavar="N", help="run for N of them a minute; also changes the rate")
        what.add_argument("--stop", action="store_true", help="leave the others alone")
        parser.add_argument("--reason", default="", help="for the audit")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Does what it is told, and prints how far it has come."""
        with acting_for(tenant_of(options["tenant"]).pk, person()):
            rule = rule_named(options["rule"])
            try:
                if options["rate"] is not None:
                    rules.take_up(rule.pk, rate=options["rate"], reason=options["reason"])
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
