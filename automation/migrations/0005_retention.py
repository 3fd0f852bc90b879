"""How long runs and events are kept, and how far that has come."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0004_event_batch"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Retention",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("runs_from", models.BigIntegerField(db_default=0, default=0)),
                ("events_from", models.BigIntegerField(db_default=0, default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("removed", models.JSONField(default=dict)),
                ("purged_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="event",
            name="details_removed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="limits",
            name="header_days",
            field=models.IntegerField(db_default=400, default=400),
        ),
        migrations.AddField(
            model_name="run",
            name="details_removed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="run",
            name="event",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="automation.event",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="rule",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="automation.rule",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="rule_version",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="automation.ruleversion",
            ),
        ),
        # Whoever keeps details for longer than a year keeps what is left of runs for as long.
        migrations.RunSQL(
            "UPDATE automation_limits SET retention_days = GREATEST(retention_days, 1),"
            " events_kept = GREATEST(events_kept, 0), header_days = GREATEST(header_days, retention_days)"
            " WHERE retention_days < 1 OR events_kept < 0 OR header_days < retention_days",
            migrations.RunSQL.noop,
        ),
        migrations.AddConstraint(
            model_name="limits",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("events_kept__gte", 0),
                    ("header_days__gte", models.F("retention_days")),
                    ("retention_days__gte", 1),
                ),
                name="automation_limits_retention",
            ),
        ),
    ]
