"""A rule's own note is told from what people write, and is no activity of the ticket."""

from django.db import migrations, models

MOVE = """
CREATE OR REPLACE FUNCTION helpdesk_move_activity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE helpdesk_ticket t SET last_activity_at = GREATEST(t.last_activity_at, c.at)
      FROM (SELECT n.ticket_id, max(n.created_at) AS at FROM new_comments n{only}
             GROUP BY n.ticket_id ORDER BY n.ticket_id) c
     WHERE t.id = c.ticket_id;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("helpdesk", "0002_kept_by_database")]

    operations = [
        migrations.AddField(
            model_name="comment",
            name="is_automatic",
            field=models.BooleanField(
                db_default=False, default=False, editable=False, verbose_name="written by a rule"
            ),
        ),
        migrations.RunSQL(MOVE.format(only=" WHERE NOT n.is_automatic"), MOVE.format(only="")),
    ]
