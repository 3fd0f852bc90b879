"""Imports and what became of their rows."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.constraints import composite_foreign_key


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=20, verbose_name="records")),
                ("batch", models.CharField(max_length=80, verbose_name="batch")),
                ("file_name", models.CharField(max_length=255, verbose_name="file")),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                ("options", models.JSONField(default=dict, verbose_name="options")),
                ("rows_total", models.BigIntegerField(default=0, verbose_name="rows")),
                ("rows_done", models.BigIntegerField(default=0, verbose_name="rows done")),
                ("created", models.BigIntegerField(default=0, verbose_name="created")),
                ("updated", models.BigIntegerField(default=0, verbose_name="updated")),
                ("unchanged", models.BigIntegerField(default=0, verbose_name="unchanged")),
                ("rejected", models.BigIntegerField(default=0, verbose_name="rejected")),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="started at"
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="finished at")),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "import",
                "verbose_name_plural": "imports",
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ImportedRow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField(verbose_name="row")),
                ("line", models.BigIntegerField(verbose_name="line")),
                ("outcome", models.CharField(max_length=10, verbose_name="outcome")),
                ("record", models.BigIntegerField(null=True, verbose_name="record")),
                ("problems", models.JSONField(default=list, verbose_name="problems")),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="imports.importjob",
                    ),
                ),
            ],
            options={
                "verbose_name": "imported row",
                "verbose_name_plural": "imported rows",
                "ordering": ["id"],
            },
        ),
        migrations.AddIndex(
            model_name="importjob",
            index=models.Index(fields=["tenant", "kind", "digest", "id"], name="imports_job_of_file"),
        ),
        migrations.AddConstraint(
            model_name="importjob",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="imports_job_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="importjob",
            constraint=models.UniqueConstraint(
                condition=models.Q(("finished_at__isnull", True)),
                fields=("tenant", "kind", "digest"),
                name="imports_job_open",
            ),
        ),
        migrations.AddIndex(
            model_name="importedrow",
            index=models.Index(
                condition=models.Q(("outcome", "rejected")), fields=["job", "number"], name="imports_row_rejected"
            ),
        ),
        migrations.AddConstraint(
            model_name="importedrow",
            constraint=models.UniqueConstraint(fields=("job", "number"), name="imports_row_once"),
        ),
        composite_foreign_key("imports_importedrow", "job_id", "imports_importjob"),
    ]
