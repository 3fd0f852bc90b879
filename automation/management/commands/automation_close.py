"""Closes a tenant, opens it again, or removes a closed one's data before its time."""

import time
from collections import Counter
from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from automation.engine.operate import Refused
from automation.engine.retention.closing import close, reopen
from automation.engine.retention.rounds import round_of
from automation.management.arguments import add_dry_run, add_json, add_reason, add_tenant, write_json
from automation.management.naming import tenant_named
from automation.management.verbs import NOTHING_CHANGED, person
from automation.models import Retention
from tenants.context import acting_as
from tenants.models import Tenant

ABOUT = __doc__

EVERY = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    """`manage.py automation_close --tenant acme --reason "contract ended"`: stops it at once; its data goes later."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whom, why, and what of it."""
        add_tenant(parser)
        add_reason(parser)
        add_dry_run(parser)
        add_json(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--reopen", action="store_true", help="open it again; possible for 30 days")
        what.add_argument(
            "--purge-now",
            metavar="SLUG",
            help="remove all data of a closed one now, for ever; the slug once more, so that it isn't the wrong one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Says what stands afterwards."""
        tenant = tenant_named(options["tenant"])
        try:
            with acting_as(person()), transaction.atomic() if options["dry_run"] else nullcontext():
                answer = self._do(tenant, options)
                if options["dry_run"]:
                    transaction.set_rollback(True)
                    self.stderr.write(NOTHING_CHANGED)
        except Refused as refusal:
            raise CommandError(str(refusal)) from refusal
        if options["json"]:
            write_json(self.stdout, answer)
        else:
            self.stdout.write(_line(answer))

    def _do(self, tenant: Tenant, options: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"tenant": tenant.slug}
        if options["reopen"]:
            reopen(tenant.pk, reason=options["reason"])
            return {**answer, "state": "open"}
        if options["purge_now"] is not None:
            return {**answer, "state": "purged", "removed": self._purge(tenant, options)}
        return {**answer, "state": "closed", "removed_from": close(tenant.pk, reason=options["reason"])}

    def _purge(self, tenant: Tenant, options: dict[str, Any]) -> int | None:
        """How many rows were removed; None where that isn't to be done."""
        if options["purge_now"] != tenant.slug:
            raise CommandError(f"--purge-now says {options['purge_now']!r}, not {tenant.slug!r}: nothing was done.")
        if tenant.is_open:
            raise CommandError(f"{tenant.slug} is open, and nothing was done: close it first, without --purge-now.")
        if options["dry_run"]:
            return None
        removed: Counter[str] = Counter()
        said_at = time.monotonic()
        for portion in round_of(tenant.pk, purge_now=True):
            removed.update(portion.removed)
            if time.monotonic() - said_at >= EVERY:
                said_at = time.monotonic()
                self.stderr.write(f"{tenant.slug}: {portion.what}, {sum(removed.values())} rows removed")
        if not Retention.objects.filter(tenant=tenant, purged_at__isnull=False).exists():
            raise CommandError("A worker is still on a step of this tenant: try again in a minute.")
        return sum(removed.values())


def _line(answer: dict[str, Any]) -> str:
    """What stands afterwards, for people."""
    if answer["state"] == "open":
        return f"{answer['tenant']} is open."
    if answer["state"] == "closed":
        return f"{answer['tenant']} is closed. Its data is removed from {answer['removed_from']:%Y-%m-%d %H:%M} UTC on."
    if answer["removed"] is None:
        return f"{answer['tenant']} is closed: all of its rows would be removed now, for ever."
    return f"{answer['tenant']}: {answer['removed']} rows removed, nothing is left of it."
