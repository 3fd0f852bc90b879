"""Removes what tenants needn't keep any longer, at once instead of bit by bit."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from automation.engine.retention.chore import forget
from automation.engine.retention.portions import Portion
from automation.engine.retention.rounds import rehearsal_of, round_of
from automation.management.arguments import add_dry_run, add_json, at_least, write_json
from automation.management.naming import tenant_named
from automation.management.verbs import NOTHING_CHANGED
from tenants.models import Tenant

ABOUT = __doc__

EVERY = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    """`manage.py automation_prune --tenant acme`: the round that workers do, in batches; Ctrl-C loses nothing."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose rows, for how long at most, and how the result is printed."""
        parser.add_argument(
            "--tenant", metavar="SLUG", help="this one only; without it all of them, one after the other"
        )
        parser.add_argument(
            "--seconds", type=at_least(0, float), default=0.0, help="stop after so long; the next round goes on"
        )
        parser.add_argument("--pause", type=at_least(0, float), default=0.0, help="seconds of rest between two batches")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints what was, or would be, removed of each tenant, and progress to stderr."""
        tenants = self._tenants(options["tenant"])
        ends_at = time.monotonic() + options["seconds"] if options["seconds"] > 0 else None
        total: dict[str, dict[str, int]] = {}
        over = False
        for tenant in tenants:
            batches = rehearsal_of(tenant.pk) if options["dry_run"] else round_of(tenant.pk)
            total[tenant.slug], over = self._prune(tenant, batches, pause=options["pause"], ends_at=ends_at)
            if over:
                break
        while options["tenant"] is None and not over and not options["dry_run"] and forget():
            pass
        if options["dry_run"]:
            self.stderr.write(NOTHING_CHANGED)
        if options["json"]:
            write_json(self.stdout, {"finished": not over, "removed": total})
            return
        for slug, removed in total.items():
            self.stdout.write(f"{slug}: {_said(removed)}")
        if over:
            self.stdout.write("Stopped as asked: there is more to do.")

    def _tenants(self, slug: str | None) -> list[Tenant]:
        """This one only; without it all of them, one after the other."""
        return list(Tenant.objects.order_by("id")) if slug is None else [tenant_named(slug)]

    def _prune(
        self, tenant: Tenant, batches: Iterator[Portion], *, pause: float, ends_at: float | None
    ) -> tuple[dict[str, int], bool]:
        removed: Counter[str] = Counter()
        looked, said_at = 0, time.monotonic()
        for batch in batches:
            removed.update(batch.removed)
            looked += batch.looked
            if batch.what == "purge":
                self.stderr.write(f"{tenant.slug} is closed: all of its rows would be removed now, for ever.")
            if time.monotonic() - said_at >= EVERY:
                said_at = time.monotonic()
                self.stderr.write(f"{tenant.slug}: {batch.what}, {looked} rows looked at; {_said(removed)}")
            if ends_at is not None and time.monotonic() >= ends_at:
                return dict(removed), True
            time.sleep(pause)
        return dict(removed), False


def _said(removed: dict[str, int]) -> str:
    """What was removed, in a line."""
    return ", ".join(f"{count} {what}" for what, count in sorted(removed.items())) or "nothing to remove"
