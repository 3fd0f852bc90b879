"""Lists the versions of rules that runs are still on, until they have drained; cancels those on older ones."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine import rules
from automation.engine.operate import Refused
from automation.management.arguments import (
    add_dry_run,
    add_json,
    add_reason,
    add_rule,
    add_tenant,
    misused,
    write_json,
    write_table,
)
from automation.management.naming import rule_named, tenant_named
from automation.management.verbs import NOTHING_CHANGED, person
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_versions --tenant acme` lists; `--rule RULE --cancel-older` cancels what is on others."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose versions, and which."""
        add_tenant(parser)
        add_rule(parser, "this one only")
        parser.add_argument("--older", action="store_true", help="only versions that no new event follows any more")
        parser.add_argument(
            "--cancel-older", action="store_true", help="cancel the runs on older versions of the rule that is named"
        )
        add_reason(parser)
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one line a version; with `--cancel-older` first cancels, and says how many."""
        if options["cancel_older"] and not options["rule"]:
            raise misused("--cancel-older needs --rule.")
        if options["dry_run"] and not options["cancel_older"]:
            raise misused("--dry-run goes with --cancel-older: without it nothing is changed anyway.")
        with acting_for(tenant_named(options["tenant"]).pk, person()):
            rule_id = rule_named(options["rule"]).pk if options["rule"] else None
            if options["dry_run"]:
                runs = sum(use.runs for use in rules.older_in_use(rule_id))
                self.stderr.write(f"Would cancel: {runs}. {NOTHING_CHANGED}")
            elif options["cancel_older"] and rule_id is not None:
                self._cancel(rule_id, options["reason"])
            found = rules.older_in_use(rule_id) if options["older"] else rules.in_use(rule_id)
        if options["json"]:
            write_json(self.stdout, [asdict(use) for use in found])
            return
        if not found:
            self.stdout.write("No run is on any of them.")
        head = ("rule", "version", "live", "runs", "dead letters", "oldest", "at")
        write_table(self.stdout, head, (_row(use) for use in found))

    def _cancel(self, rule_id: int, reason: str) -> None:
        try:
            done = rules.cancel_older(rule_id, reason)
        except Refused as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stderr.write(f"Cancelled: {done.ended}; asked their workers to end: {done.asked}.")


def _row(use: rules.VersionUse) -> list[Any]:
    return [
        f"{use.rule_id} {use.rule_name}",
        use.number,
        "yes" if use.live else "",
        use.runs,
        use.dead_letters or "",
        f"{use.oldest_at:%Y-%m-%d %H:%M}" if use.oldest_at else "",
        ", ".join(f"{path}: {count}" for path, count in use.at.items()),
    ]
