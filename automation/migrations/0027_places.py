"""A step that finds no place with its connection waits until one is given back."""

from pathlib import Path

from django.db import migrations, models

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "places.sql"


class Migration(migrations.Migration):
    dependencies = [("automation", "0026_notice_given_up")]

    operations = [
        migrations.AddField("timer", "waits_for", models.BigIntegerField(null=True)),
        migrations.AddField("timer", "waits_until", models.DateTimeField(null=True)),
        migrations.AddField("timer", "has_turn", models.BooleanField(db_default=False, default=False)),
        migrations.RunSQL(FUNCTIONS.read_text(), migrations.RunSQL.noop),
    ]
