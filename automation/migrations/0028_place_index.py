"""Finds who waits for a place; built while the table is in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0027_places")]

    operations = [
        AddIndexConcurrently(
            "timer",
            models.Index(
                fields=["waits_for", "has_turn", "id"],
                name="automation_timer_place",
                condition=Q(waits_until=F("due_at")),
            ),
        ),
    ]
