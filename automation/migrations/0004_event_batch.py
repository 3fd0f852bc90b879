"""The events of an import are found by its batch; made beside the writers of a large table."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0003_served_batch")]

    operations = [
        AddIndexConcurrently(
            model_name="event",
            index=models.Index(
                condition=models.Q(("batch", ""), _negated=True),
                fields=["batch", "tenant", "id"],
                name="automation_event_batch",
            ),
        ),
    ]
