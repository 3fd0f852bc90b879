"""Indexes of what people do to runs: expiry and the watch over live runs, replays, bulk jobs."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("automation", "0007_operate")]

    operations = [
        AddIndexConcurrently(
            model_name="deadletter",
            index=models.Index(
                condition=models.Q(("bulk_id__isnull", False)), fields=["bulk_id"], name="automation_dead_bulk"
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state__in", ("pending", "running", "waiting", "paused"))),
                fields=["deadline_at", "id"],
                name="automation_run_deadline",
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("forked_from_run__isnull", False)),
                fields=["event", "rule"],
                name="automation_run_replays",
            ),
        ),
        AddIndexConcurrently(
            model_name="bulkjob",
            index=models.Index(condition=models.Q(("state", "running")), fields=["id"], name="automation_bulk_running"),
        ),
    ]
