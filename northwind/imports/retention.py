"""For how long it can be read what became of each row of an import."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.db.models.functions import Coalesce, Now

from northwind.imports.models import ImportedRow, ImportJob
from tenants.context import acting_for


def drop_reports(tenant_id: int, *, limit: int) -> int:
    """Deletes up to `limit` reports of rows of one import that ended, or was left lying, long enough ago.

    The import itself stays, a line by which its file is known, and its counts. One that wasn't at its end can still be
    gone on with.
    """
    with acting_for(tenant_id):
        ended = ImportJob.objects.alias(last=Coalesce("finished_at", "started_at"))
        old = ended.filter(last__lt=Now() - timedelta(days=settings.IMPORT_REPORTS_DAYS))
        with_rows = old.filter(Exists(ImportedRow.objects.filter(job=OuterRef("pk")))).order_by("pk")
        job_id = with_rows.values_list("pk", flat=True).first()
        if job_id is None:
            return 0
        rows = ImportedRow.objects.filter(job=job_id).order_by("number").values_list("pk", flat=True)
        return ImportedRow.objects.filter(pk__in=list(rows[:limit])).delete()[0]
