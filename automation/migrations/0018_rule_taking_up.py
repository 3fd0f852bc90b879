"""How far a rule has come in running for records that were there before it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0017_installation")]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="taking_up",
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
    ]
