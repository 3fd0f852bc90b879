"""Publishes a rule's draft, or says what publishing it would do."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.definitions.change_words import change_sentence
from automation.engine import rules
from automation.engine.operate import Refused
from automation.management.arguments import add_dry_run, add_json, add_tenant, misused, write_json
from automation.management.naming import a_minute, rule_named, tenant_named
from automation.management.verbs import person
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_publish RULE --tenant acme --dry-run` only says; without it the draft goes live."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, and what becomes of runs under way."""
        add_tenant(parser)
        parser.add_argument("rule", help="its number or name")
        add_dry_run(parser)
        parser.add_argument(
            "--waiting",
            choices=rules.OLDER_RUNS,
            default="keep",
            help="runs under way finish on their version (keep, the default), or are cancelled",
        )
        parser.add_argument(
            "--existing-rate",
            metavar="RATE",
            help="run this fast, 60/m, for the records that it concerns already; without it they are left alone",
        )
        parser.add_argument("--note", metavar="TEXT", default="", help="for the list of versions")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints what changes and what runs under way will do, and publishes exactly the draft of which it spoke."""
        with acting_for(tenant_named(options["tenant"]).pk, person()):
            plan = rules.plan(rule_named(options["rule"]).pk)
            rate = a_minute(options["existing_rate"])
            if rate == 0:
                raise misused("--existing-rate is more than 0: without it they are left alone.")
            said = plan.sentences(options["waiting"], existing_rate=rate)
            if options["json"]:
                write_json(self.stdout, _as_json(plan, said))
            else:
                self.stdout.write("\n".join(said))
            if plan.problems:
                raise CommandError("It can't be published:\n" + "\n".join(map(str, plan.problems)))
            if options["dry_run"]:
                return
            try:
                version = rules.publish(
                    plan.rule.pk,
                    revision=plan.revision,
                    note=options["note"],
                    waiting=options["waiting"],
                    existing_rate=rate,
                )
            except Refused as refusal:
                raise CommandError(str(refusal)) from refusal
        self.stderr.write(f"Version {version.number} is live.")


def _as_json(plan: rules.Plan, said: list[str]) -> dict[str, Any]:
    return {
        "rule": plan.rule.pk,
        "name": plan.rule.name,
        "revision": plan.revision,
        "number": plan.number,
        "live": plan.live,
        "nothing_new": plan.nothing_new,
        "problems": [asdict(problem) for problem in plan.problems],
        "changes": [asdict(change) | {"sentence": change_sentence(change)} for change in plan.changes],
        "under_way": [asdict(one.use) | {"lost_steps": one.lost_steps} for one in plan.under_way],
        "existing": asdict(plan.existing) if plan.existing else None,
        "sentences": said,
    }
