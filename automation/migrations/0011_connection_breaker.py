"""What a connection may call and how often, its breaker, and how its calls of late ended."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0010_drip_indexes"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConnectionCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("ok", models.BooleanField()),
                ("calls", models.IntegerField(db_default=1, default=1)),
                ("record", models.CharField(blank=True, db_default="", default="", max_length=120)),
                ("error", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
        ),
        migrations.AddField(
            model_name="connection",
            name="allowed_hosts",
            field=models.CharField(blank=True, db_default="", default="", max_length=1000),
        ),
        migrations.AddField(
            model_name="connection",
            name="breaker",
            field=models.CharField(db_default="closed", default="closed", editable=False, max_length=10),
        ),
        migrations.AddField(
            model_name="connection",
            name="breaker_since",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="breaker_trips",
            field=models.IntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="connection",
            name="breaker_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="concurrency",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="connection",
            name="last_error",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=500),
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.CheckConstraint(
                condition=models.Q(("breaker__in", ("closed", "open", "half_open", "off"))),
                name="automation_connection_breaker",
            ),
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.CheckConstraint(
                condition=models.Q(("concurrency", None), ("concurrency__gte", 1), _connector="OR"),
                name="automation_connection_concurrency",
            ),
        ),
        migrations.AddField(
            model_name="connectioncall",
            name="connection",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="recent_calls",
                to="automation.connection",
            ),
        ),
        migrations.AddIndex(
            model_name="connectioncall",
            index=models.Index(fields=["connection", "ok", "at"], name="automation_call_recent"),
        ),
        migrations.AddIndex(
            model_name="connectioncall",
            index=models.Index(fields=["at"], name="automation_call_old"),
        ),
    ]
