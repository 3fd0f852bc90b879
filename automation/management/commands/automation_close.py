"""Closes a tenant, opens it again, or removes a closed one's data before its time."""

import time
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.operate import Refused
from automation.engine.retention.closing import close, reopen
from automation.engine.retention.rounds import round_of
from automation.management.arguments import add_reason, add_tenant
from automation.management.naming import tenant_named
from automation.management.verbs import person
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
            with acting_as(person()):
                self._do(tenant, options)
        except Refused as refusal:
            raise CommandError(str(refusal)) from refusal

    def _do(self, tenant: Tenant, options: dict[str, Any]) -> None:
        if options["reopen"]:
            reopen(tenant.pk, reason=options["reason"])
            self.stdout.write(f"{tenant.slug} is open.")
        elif options["purge_now"] is not None:
            self._purge(tenant, options["purge_now"])
        else:
            goes = close(tenant.pk, reason=options["reason"])
            self.stdout.write(f"{tenant.slug} is closed. Its data is removed from {goes:%Y-%m-%d %H:%M} UTC on.")

    def _purge(self, tenant: Tenant, again: str) -> None:
        if again != tenant.slug:
            raise CommandError(f"--purge-now says {again!r}, not {tenant.slug!r}: nothing was done.")
        if tenant.is_open:
            raise CommandError(f"{tenant.slug} is open, and nothing was done: close it first, without --purge-now.")
        removed: Counter[str] = Counter()
        said_at = time.monotonic()
        for portion in round_of(tenant.pk, purge_now=True):
            removed.update(portion.removed)
            if time.monotonic() - said_at >= EVERY:
                said_at = time.monotonic()
                self.stderr.write(f"{tenant.slug}: {portion.what}, {sum(removed.values())} rows removed")
        if not Retention.objects.filter(tenant=tenant, purged_at__isnull=False).exists():
            raise CommandError("A worker is still on a step of this tenant: try again in a minute.")
        self.stdout.write(f"{tenant.slug}: {sum(removed.values())} rows removed, nothing is left of it.")
