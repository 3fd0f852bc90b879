"""A tenant's own mail addresses."""

import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0015_backtest_indexes"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="OwnAddress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.EmailField(max_length=254)),
                (
                    "answers_automatic",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Rules may answer mail to this address although it says that a machine sent it.",
                    ),
                ),
                ("revision", models.IntegerField(db_default=0, default=0)),
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
                "verbose_name": "own address",
                "verbose_name_plural": "own addresses",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "address"), name="automation_own_address"),
                    models.CheckConstraint(
                        condition=models.Q(("address", django.db.models.functions.text.Lower("address"))),
                        name="automation_own_address_lower",
                    ),
                    models.UniqueConstraint(fields=("tenant", "id"), name="automation_own_address_tenant_id"),
                ],
            },
        ),
    ]
