"""Finds pauses that end by themselves, and what a drip holds; built while the tables are in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0009_drips")]

    operations = [
        AddIndexConcurrently(
            "pause", models.Index(fields=["until"], name="automation_pause_until", condition=Q(ended_at__isnull=True))
        ),
        AddIndexConcurrently(
            "timer",
            models.Index(
                fields=["drip_id", "due_at", "id"], name="automation_timer_drip", condition=Q(drip_id__isnull=False)
            ),
        ),
    ]
