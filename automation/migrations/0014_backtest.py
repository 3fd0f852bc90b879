"""Comparisons of a draft with the live version over stored events."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.constraints import composite_foreign_key


class Migration(migrations.Migration):
    dependencies = [("automation", "0013_limits_told"), ("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Backtest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("definition", models.JSONField()),
                ("revision", models.IntegerField(null=True)),
                ("since", models.DateTimeField()),
                ("most", models.IntegerField()),
                ("state", models.CharField(db_default="queued", default="queued", max_length=10)),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("place", models.JSONField(null=True)),
                ("total", models.IntegerField(db_default=0, default=0)),
                ("judged", models.IntegerField(db_default=0, default=0)),
                ("result", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True, db_default="", default="")),
                ("asked_by", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "against",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="automation.ruleversion",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="automation.rule",
                    ),
                ),
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
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("queued", "running", "done", "cancelled", "failed"))),
                        name="automation_backtest_state",
                    )
                ],
            },
        ),
        composite_foreign_key("automation_backtest", "rule_id", "automation_rule"),
        composite_foreign_key("automation_backtest", "against_id", "automation_ruleversion"),
    ]
