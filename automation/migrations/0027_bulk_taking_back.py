"""A job on many dead letters that has ended knows whether all that nobody had begun is back among them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0026_notice_given_up")]

    operations = [
        migrations.AddField(
            model_name="bulkjob",
            name="taking_back",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
