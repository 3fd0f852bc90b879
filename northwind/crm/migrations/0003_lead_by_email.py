"""Leads are found by their address; made beside the writers of the table."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("crm", "0002_kept_by_database")]

    operations = [
        AddIndexConcurrently(
            model_name="lead",
            index=models.Index(
                models.F("tenant"),
                Lower("email"),
                condition=models.Q(("email", ""), _negated=True),
                name="crm_lead_by_email",
            ),
        ),
    ]
