"""A notice knows whom of its recipients it has been mailed to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0022_shelves")]

    operations = [
        migrations.AddField(
            model_name="notice",
            name="mailed",
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]
