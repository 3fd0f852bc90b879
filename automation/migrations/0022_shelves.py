"""What a rule or connection holds lies on a shelf and costs no claims, and the end of a pause may take several goes."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "drips.sql"
# With another parameter it would be another function beside it.
ANEW = "DROP FUNCTION IF EXISTS automation_let_out(interval);"


class Migration(migrations.Migration):
    dependencies = [("automation", "0021_notice_languages")]

    operations = [
        migrations.AlterField(
            "drip",
            "pause",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="drips",
                to="automation.pause",
            ),
        ),
        migrations.AlterField("drip", "rate", models.IntegerField(null=True)),
        migrations.AlterField("drip", "next_at", models.DateTimeField(db_default=Now(), null=True)),
        migrations.AddField("drip", "paced_at", models.DateTimeField(null=True)),
        migrations.AddField("pause", "place", models.BigIntegerField(null=True)),
        migrations.AddField(
            "pause", "resumed_by", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
        migrations.AddField("pause", "resumed_by_id", models.BigIntegerField(null=True)),
        migrations.RunSQL(ANEW + FUNCTIONS.read_text(), migrations.RunSQL.noop),
    ]
