"""Pauses say how they go on, and a drip lets out at a rate what they held."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "drips.sql"


class Migration(migrations.Migration):
    dependencies = [("automation", "0008_operate_indexes"), ("tenants", "0001_initial")]

    operations = [
        migrations.AddField("pause", "dropped_events", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("pause", "dropped_runs", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("pause", "keep", models.CharField(db_default="all", default="all", max_length=8)),
        migrations.AddField("pause", "rate", models.IntegerField(null=True)),
        migrations.AddField("pause", "recent_minutes", models.IntegerField(null=True)),
        migrations.AddField("pause", "resumed_at", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "pause",
            models.CheckConstraint(condition=Q(keep__in=["all", "recent", "drop"]), name="automation_pause_keep"),
        ),
        migrations.AddConstraint(
            "pause",
            models.CheckConstraint(
                condition=Q(rate__isnull=True) | Q(rate__gte=1, rate__lte=60_000), name="automation_pause_rate"
            ),
        ),
        migrations.AddField("timer", "drip_id", models.BigIntegerField(null=True)),
        migrations.CreateModel(
            name="Drip",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=12)),
                ("subject_id", models.BigIntegerField(null=True)),
                ("rate", models.IntegerField()),
                ("kept_until", models.BigIntegerField(null=True)),
                ("since", models.DateTimeField(db_default=Now())),
                ("next_at", models.DateTimeField(db_default=Now())),
                ("held", models.IntegerField(db_default=0, default=0)),
                ("released", models.IntegerField(db_default=0, default=0)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "pause",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="drips", to="automation.pause"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(rate__gte=1, rate__lte=60_000), name="automation_drip_rate"),
                    models.UniqueConstraint(
                        condition=Q(ended_at__isnull=True),
                        fields=("tenant", "scope", "subject_id"),
                        name="automation_drip_one_open",
                        nulls_distinct=False,
                    ),
                ],
                "indexes": [
                    models.Index(condition=Q(ended_at__isnull=True), fields=["next_at"], name="automation_drip_next"),
                ],
            },
        ),
        migrations.RunSQL(FUNCTIONS.read_text(), migrations.RunSQL.noop),
    ]
