"""Which batches of imports were served by the rules that run once for each."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from tenants.constraints import composite_foreign_key


class Migration(migrations.Migration):
    dependencies = [("automation", "0002_functions"), ("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="ServedBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("batch", models.CharField(max_length=80)),
                ("event_id", models.BigIntegerField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                    models.UniqueConstraint(fields=("tenant", "rule", "batch"), name="automation_served_once")
                ],
            },
        ),
        composite_foreign_key("automation_servedbatch", "rule_id", "automation_rule"),
    ]
