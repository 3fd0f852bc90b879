"""Where the database lives, so that one that was restored elsewhere begins paused."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("automation", "0016_own_addresses")]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.CharField(max_length=80)),
                ("since", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(id=1), name="automation_installation_one")]
            },
        ),
    ]
