"""A job on many dead letters that has ended knows whether all that nobody had begun is back among them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0029_pause_ending")]

    operations = [
        migrations.AddField(
            model_name="bulkjob",
            name="taking_back",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
