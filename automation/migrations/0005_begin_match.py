"""The function that begins a matcher's transaction, and the last link that lacked its tenant."""

from pathlib import Path

from django.db import migrations, models

from tenants.constraints import composite_foreign_key

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "functions.sql"


class Migration(migrations.Migration):
    dependencies = [("automation", "0004_event_cause")]

    operations = [
        migrations.RunSQL(FUNCTIONS.read_text(), migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="ruleversion",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="automation_version_tenant_id"),
        ),
        composite_foreign_key("automation_rule", "published_id", "automation_ruleversion"),
    ]
