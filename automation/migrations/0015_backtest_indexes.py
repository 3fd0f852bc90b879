"""Backtests are found by being open, and by their rule."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0014_backtest")]

    operations = [
        AddIndexConcurrently(
            model_name="backtest",
            index=models.Index(
                condition=models.Q(("state__in", ("queued", "running"))), fields=["id"], name="automation_backtest_open"
            ),
        ),
        AddIndexConcurrently(
            model_name="backtest",
            index=models.Index(fields=["tenant", "rule", "id"], name="automation_backtest_rule"),
        ),
    ]
