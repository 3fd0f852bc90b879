"""Notices are kept in the languages of those whom they go to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("automation", "0020_paces"),
    ]

    operations = [
        migrations.AddField(
            model_name="notice",
            name="said",
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]
