"""What people do to runs: replays that send as new, bulk jobs, and which job resolved a dead letter."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0006_retention_indexes"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("verb", models.CharField(max_length=16)),
                ("filters", models.JSONField(default=dict)),
                ("rate", models.FloatField()),
                ("most", models.IntegerField(blank=True, null=True)),
                ("stop_after", models.IntegerField(blank=True, null=True)),
                ("state", models.CharField(db_default="running", default="running", max_length=12)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("actor", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("actor_id", models.BigIntegerField(null=True)),
                ("last_id", models.BigIntegerField(db_default=0, default=0)),
                ("until_id", models.BigIntegerField()),
                ("next_at", models.DateTimeField()),
                ("done", models.IntegerField(db_default=0, default=0)),
                ("refused", models.IntegerField(db_default=0, default=0)),
                ("refusals", models.JSONField(default=dict)),
                ("failed_again", models.IntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="deadletter",
            name="bulk_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="epoch",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="bulkjob",
            name="tenant",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkjob",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ("running", "finished", "stopped", "cancelled"))),
                name="automation_bulk_state",
            ),
        ),
    ]
