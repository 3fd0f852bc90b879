"""Finds what refers to a step, an event or a run before it goes; built beside the work that is going on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("automation", "0005_retention")]

    operations = [
        AddIndexConcurrently(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("step__isnull", False)), fields=["step"], name="automation_dead_step"
            ),
        ),
        AddIndexConcurrently(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("event__isnull", False)), fields=["event"], name="automation_dead_event"
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("forked_from_run__isnull", False)),
                fields=["forked_from_run", "event"],
                name="automation_run_fork",
            ),
        ),
    ]
