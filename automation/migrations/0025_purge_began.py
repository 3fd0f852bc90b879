"""Since when a closed tenant's data goes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0024_step_connections")]

    operations = [
        migrations.AddField(
            model_name="retention",
            name="purge_began_at",
            field=models.DateTimeField(null=True),
        ),
    ]
