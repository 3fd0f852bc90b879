"""A notice knows when and why it was given up for some of those whom it was for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0025_purge_began")]

    operations = [
        migrations.AddField(model_name="notice", name="given_up_at", field=models.DateTimeField(null=True)),
        migrations.AddField(
            model_name="notice", name="error", field=models.TextField(blank=True, db_default="", default="")
        ),
    ]
