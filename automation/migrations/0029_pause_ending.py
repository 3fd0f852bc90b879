"""The index by which every poll sees whether a pause is being ended; built while the table is in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0028_place_index")]

    operations = [
        AddIndexConcurrently(
            "pause",
            models.Index(
                fields=["resumed_at", "id"],
                name="automation_pause_ending",
                condition=Q(ended_at__isnull=True, resumed_at__isnull=False),
            ),
        ),
    ]
