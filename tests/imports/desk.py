"""A tenant that files are imported into, by the commands as people type them."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from tenants.context import acting_for
from tenants.models import Tenant
from tests.factories import TenantFactory


@dataclass
class Desk:
    """A tenant and a folder; `said` is what the last command printed, `told` what it said beside that."""

    folder: Path
    tenant: Tenant = field(default_factory=TenantFactory)
    said: str = ""
    told: str = ""

    def acting(self) -> Any:
        """In the tenant."""
        return acting_for(self.tenant.pk)

    def write(self, header: str, *rows: Sequence[str] | str, name: str = "rows.csv") -> Path:
        """A file of these rows; a row is its cells, or a line as it stands."""
        path = self.folder / name
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            stream.write(header + "\n")
            for row in rows:
                if isinstance(row, str):
                    stream.write(row + "\n")
                else:
                    writer.writerow(row)
        return path

    def command(self, kind: str, path: Path, *options: str, code: int = 0) -> str:
        """Runs `import_<kind>`; answers what it refused or failed with, "" where it didn't; its exit code is `code`."""
        out, err = io.StringIO(), io.StringIO()
        refused, found = "", 0
        try:
            call_command(f"import_{kind}", str(path), f"--tenant={self.tenant.slug}", *options, stdout=out, stderr=err)
        except CommandError as error:
            refused, found = str(error), error.returncode
        self.said, self.told = out.getvalue(), err.getvalue()
        assert found == code, (refused, self.said, self.told)
        return refused

    def report(self, name: str = "report.csv") -> list[dict[str, str]]:
        """The rows of a report that was written."""
        with (self.folder / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
