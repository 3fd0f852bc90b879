"""What is let out at a pace is let out when it is due and not beforehand, so a restart makes no burst."""

from pathlib import Path

from django.db import migrations

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "drips.sql"
# A function's parameter gets another name only when it is made anew.
ANEW = "DROP FUNCTION IF EXISTS automation_let_out(interval);"


class Migration(migrations.Migration):
    dependencies = [("automation", "0019_rule_taking_up_index")]

    operations = [migrations.RunSQL(ANEW + FUNCTIONS.read_text(), migrations.RunSQL.noop)]
