"""Writes all of a tenant's data into one zip archive."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.retention.export import FORMS, export
from automation.management.arguments import add_json, add_tenant, misused, write_json
from automation.management.naming import tenant_named
from automation.management.verbs import person
from tenants.context import acting_as
from tenants.models import Tenant

ABOUT = __doc__

EVERY = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    """`manage.py automation_export --tenant acme --to acme.zip`; `--to -` writes it to standard output."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose data, where to, and in which form."""
        add_tenant(parser)
        parser.add_argument("--to", metavar="FILE", required=True, help="the archive; it must not exist yet")
        parser.add_argument("--form", choices=FORMS, default="jsonl", help="of the files in it")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Writes beside the target and renames at the end, so that half an archive is never taken for a whole one."""
        tenant = tenant_named(options["tenant"])
        if options["json"] and options["to"] == "-":
            raise misused("The archive itself goes to standard output: leave --json out, or name a file.")
        self.said_at = time.monotonic()
        with acting_as(person()):
            if options["to"] == "-":
                counts = export(tenant, sys.stdout.buffer, form=options["form"], progress=self._progress)
            else:
                counts = self._to_file(tenant, Path(options["to"]), form=options["form"])
        if options["json"]:
            write_json(self.stdout, {"file": options["to"], "rows": counts})
            return
        self.stderr.write(f"{sum(counts.values())} rows of {sum(map(bool, counts.values()))} tables.")

    def _to_file(self, tenant: Tenant, path: Path, *, form: str) -> dict[str, int]:
        if path.exists():
            raise CommandError(f"{path} exists already.")
        part = path.with_name(f"{path.name}.part")
        try:
            # Nobody else reads it: it is all that there is about people.
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                counts = export(tenant, stream, form=form, progress=self._progress)
            part.rename(path)
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror or error}") from error
        finally:
            part.unlink(missing_ok=True)
        return counts

    def _progress(self, name: str, rows: int) -> None:
        if time.monotonic() - self.said_at >= EVERY:
            self.said_at = time.monotonic()
            self.stderr.write(f"{name}: {rows} rows")
