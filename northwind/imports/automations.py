"""What imports keep in which a person may be mentioned."""

from automation.extend import may_mention
from northwind.imports.models import ImportedRow, ImportJob

may_mention(ImportJob, "file_name")
may_mention(ImportedRow, "problems")
