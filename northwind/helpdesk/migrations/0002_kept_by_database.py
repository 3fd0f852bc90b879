"""Links that include the tenant, and the columns that the database itself keeps, whoever writes the row."""

from django.db import migrations

from tenants.constraints import composite_foreign_key

KEEP = """
-- A real change moves updated_at, a no-op write doesn't; a new assignee moves assigned_at, unless the writer set it himself.
CREATE FUNCTION helpdesk_keep_customer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := OLD.updated_at;
    IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := statement_timestamp(); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER helpdesk_customer_keep BEFORE UPDATE ON helpdesk_customer
    FOR EACH ROW EXECUTE FUNCTION helpdesk_keep_customer();

CREATE FUNCTION helpdesk_keep_assigned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.assignee_id IS NULL THEN RETURN NEW; END IF;
    IF TG_OP = 'INSERT' THEN
        NEW.assigned_at := COALESCE(NEW.assigned_at, statement_timestamp());
    ELSIF NEW.assignee_id IS DISTINCT FROM OLD.assignee_id AND NEW.assigned_at IS NOT DISTINCT FROM OLD.assigned_at THEN
        NEW.assigned_at := statement_timestamp();
    END IF;
    RETURN NEW;
END $$;
-- Triggers of one moment fire in the order of their names: assigned before touched.
CREATE TRIGGER helpdesk_task_1_assigned BEFORE INSERT OR UPDATE ON helpdesk_task
    FOR EACH ROW EXECUTE FUNCTION helpdesk_keep_assigned();
CREATE TRIGGER helpdesk_ticket_1_assigned BEFORE INSERT OR UPDATE ON helpdesk_ticket
    FOR EACH ROW EXECUTE FUNCTION helpdesk_keep_assigned();

CREATE FUNCTION helpdesk_keep_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A generated column is computed after this; left as it was it would count as a difference.
    NEW.status_category := OLD.status_category;
    NEW.updated_at := OLD.updated_at;
    IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := statement_timestamp(); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER helpdesk_ticket_2_touched BEFORE UPDATE ON helpdesk_ticket
    FOR EACH ROW EXECUTE FUNCTION helpdesk_keep_ticket();

-- Whoever comments moves the ticket's last activity: once a statement, in the order of the tickets.
CREATE FUNCTION helpdesk_move_activity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE helpdesk_ticket t SET last_activity_at = GREATEST(t.last_activity_at, c.at)
      FROM (SELECT n.ticket_id, max(n.created_at) AS at FROM new_comments n GROUP BY n.ticket_id ORDER BY n.ticket_id) c
     WHERE t.id = c.ticket_id;
    RETURN NULL;
END $$;
CREATE TRIGGER helpdesk_comment_activity AFTER INSERT ON helpdesk_comment
    REFERENCING NEW TABLE AS new_comments FOR EACH STATEMENT EXECUTE FUNCTION helpdesk_move_activity();
"""
LET_GO = """
DROP TRIGGER helpdesk_comment_activity ON helpdesk_comment;
DROP TRIGGER helpdesk_ticket_2_touched ON helpdesk_ticket;
DROP TRIGGER helpdesk_ticket_1_assigned ON helpdesk_ticket;
DROP TRIGGER helpdesk_task_1_assigned ON helpdesk_task;
DROP TRIGGER helpdesk_customer_keep ON helpdesk_customer;
DROP FUNCTION helpdesk_move_activity();
DROP FUNCTION helpdesk_keep_ticket();
DROP FUNCTION helpdesk_keep_assigned();
DROP FUNCTION helpdesk_keep_customer();
"""


class Migration(migrations.Migration):
    dependencies = [("helpdesk", "0001_initial")]

    operations = [
        composite_foreign_key("helpdesk_ticket", "customer_id", "helpdesk_customer"),
        composite_foreign_key("helpdesk_ticket", "assignee_id", "tenants_membership"),
        composite_foreign_key("helpdesk_ticket", "group_id", "tenants_group"),
        composite_foreign_key("helpdesk_ticketfollower", "ticket_id", "helpdesk_ticket"),
        composite_foreign_key("helpdesk_ticketfollower", "member_id", "tenants_membership"),
        composite_foreign_key("helpdesk_comment", "ticket_id", "helpdesk_ticket"),
        composite_foreign_key("helpdesk_comment", "author_id", "tenants_membership"),
        composite_foreign_key("helpdesk_task", "ticket_id", "helpdesk_ticket"),
        composite_foreign_key("helpdesk_task", "assignee_id", "tenants_membership"),
        migrations.RunSQL(KEEP, LET_GO),
    ]
