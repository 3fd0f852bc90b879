"""Erases a person from what is stored about a tenant's events and runs."""

import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.catalog.registry import UnknownKind
from automation.engine.operate import Refused
from automation.engine.retention.erase import Erased, erase, erase_member
from automation.management.arguments import add_dry_run, add_json, add_tenant, misused, write_json
from automation.management.naming import tenant_named
from automation.management.verbs import person
from tenants.context import acting_for
from tenants.models import Membership
from tenants.validators import row_number

ABOUT = __doc__

EVERY = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    """`manage.py automation_erase helpdesk.customer:12 --tenant acme`, and `--also` for another name or address."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose person, which, and what else is looked for."""
        add_tenant(parser)
        parser.add_argument(
            "person", metavar="MODEL:ID", help="such as helpdesk.customer:12; it may be deleted already"
        )
        parser.add_argument("--also", metavar="TEXT", action="append", default=[], help="a name or address; repeatable")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints what was changed, and what is left to do by hand."""
        tenant = tenant_named(options["tenant"])
        model, _colon, key = options["person"].partition(":")
        if row_number(key) is None:
            raise misused("A person is named like helpdesk.customer:12, a member like member:5.")
        self.looked, self.said_at = 0, time.monotonic()
        try:
            with acting_for(tenant.pk, person()):
                how = {"also": options["also"], "dry_run": options["dry_run"], "progress": self._progress}
                done = erase_member(int(key), **how) if model == "member" else erase(model, int(key), **how)
        except (Refused, UnknownKind) as error:
            raise CommandError(str(error)) from error
        except Membership.DoesNotExist as error:
            raise CommandError(f"There is no member {key} of this tenant.") from error
        if options["json"]:
            write_json(self.stdout, asdict(done))
        else:
            self._say(done, dry_run=options["dry_run"])

    def _progress(self, what: str, looked: int) -> None:
        self.looked += looked
        if time.monotonic() - self.said_at >= EVERY:
            self.said_at = time.monotonic()
            self.stderr.write(f"{what}: {self.looked} rows looked at")

    def _say(self, done: Erased, *, dry_run: bool) -> None:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(done.changed.items())) or "nothing"
        self.stdout.write(f"{'Would change' if dry_run else 'Changed'}: {counts}.")
        if done.too_common:
            words = ", ".join(done.too_common)
            self.stdout.write(f"Not looked for in other texts, for they are full of it: {words}. Name it with --also.")
        if done.live_runs:
            self.stdout.write(f"{done.live_runs} runs haven't ended; erase once more when they have.")
        for rule_id, name in done.rules:
            self.stdout.write(f"Rule {rule_id} says one of the words itself: {name}")
