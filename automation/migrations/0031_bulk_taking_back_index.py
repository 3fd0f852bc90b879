"""The index by which workers find jobs on dead letters that have ended and still take back."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0030_bulk_taking_back")]

    operations = [
        AddIndexConcurrently(
            model_name="bulkjob",
            index=models.Index(
                condition=models.Q(("taking_back", True)), fields=["id"], name="automation_bulk_taking_back"
            ),
        ),
    ]
