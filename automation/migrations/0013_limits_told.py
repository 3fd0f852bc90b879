"""What of its limits a tenant was told, and when somebody last looked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0012_sweep_place"),
    ]

    operations = [
        migrations.AddField(
            model_name="limits",
            name="told_events",
            field=models.SmallIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="limits",
            name="told_rules",
            field=models.SmallIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="limits",
            name="told_running",
            field=models.SmallIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="limits",
            name="used_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
