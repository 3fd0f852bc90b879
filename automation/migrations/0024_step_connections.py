"""A step's places take as many connections as a step may use, whatever their numbers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0023_notice_mailed")]

    operations = [
        # A text of any length is stored as the shorter one was: no row is written anew.
        migrations.AlterField(
            model_name="stepexecution",
            name="connection",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
