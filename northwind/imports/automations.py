"""What imports keep: where a person may be mentioned, and what goes with time."""

from automation.extend import may_mention, prune
from northwind.imports.models import ImportedRow, ImportJob
from northwind.imports.retention import drop_reports

may_mention(ImportJob, "file_name")
may_mention(ImportedRow, "problems")
prune("imported rows", drop_reports)
