"""The index by which workers find the rules that run for records that were there before them."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("automation", "0018_rule_taking_up")]

    operations = [
        AddIndexConcurrently(
            model_name="rule",
            index=models.Index(
                condition=models.Q(("taking_up__isnull", False)), fields=["id"], name="automation_rule_taking_up"
            ),
        ),
    ]
