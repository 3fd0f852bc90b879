"""An import of a file: how far it has come, and what became of each row."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tenants.models import TenantOwned


class ImportJob(TenantOwned):
    """One file on its way into a tenant. It is known by its digest, and goes on where it stopped."""

    kind = models.CharField(_("records"), max_length=20)
    batch = models.CharField(_("batch"), max_length=80)
    file_name = models.CharField(_("file"), max_length=255)
    digest = models.CharField(_("digest"), max_length=64)
    options = models.JSONField(_("options"), default=dict)
    rows_total = models.BigIntegerField(_("rows"), default=0)
    rows_done = models.BigIntegerField(_("rows done"), default=0)
    created = models.BigIntegerField(_("created"), default=0)
    updated = models.BigIntegerField(_("updated"), default=0)
    unchanged = models.BigIntegerField(_("unchanged"), default=0)
    rejected = models.BigIntegerField(_("rejected"), default=0)
    started_at = models.DateTimeField(_("started at"), db_default=Now())
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="imports_job_tenant_and_id"),
            # A file is under way once at a time.
            models.UniqueConstraint(
                fields=["tenant", "kind", "digest"], condition=Q(finished_at__isnull=True), name="imports_job_open"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "kind", "digest", "id"], name="imports_job_of_file")]

    def __str__(self) -> str:
        return f"{self.file_name} ({self.batch})"


class ImportedRow(TenantOwned):
    """What became of one row of a file. The row's own text stays in the file."""

    job = models.ForeignKey(
        ImportJob, on_delete=models.CASCADE, related_name="rows", db_constraint=False, db_index=False
    )
    number = models.BigIntegerField(_("row"))
    line = models.BigIntegerField(_("line"))
    outcome = models.CharField(_("outcome"), max_length=10)  # created, updated, unchanged, rejected
    record = models.BigIntegerField(_("record"), null=True)
    problems = models.JSONField(_("problems"), default=list)  # [{"column", "place", "message"}]

    class Meta:
        ordering = ["id"]
        verbose_name = _("imported row")
        verbose_name_plural = _("imported rows")
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="imports_row_once")]
        indexes = [
            models.Index(fields=["job", "number"], name="imports_row_rejected", condition=Q(outcome="rejected")),
        ]

    def __str__(self) -> str:
        return f"row {self.number}: {self.outcome}"
