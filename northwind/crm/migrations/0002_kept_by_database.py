"""Links that include the tenant, and the columns that the database itself keeps, whoever writes the row."""

from django.db import migrations

from tenants.constraints import composite_foreign_key

KEEP = """
-- A real change moves updated_at, a no-op write doesn't; a new assignee moves assigned_at, unless the writer set it himself.
CREATE FUNCTION crm_keep_lead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.assignee_id IS NOT NULL THEN NEW.assigned_at := COALESCE(NEW.assigned_at, statement_timestamp()); END IF;
        RETURN NEW;
    END IF;
    IF NEW.assignee_id IS DISTINCT FROM OLD.assignee_id AND NEW.assignee_id IS NOT NULL
       AND NEW.assigned_at IS NOT DISTINCT FROM OLD.assigned_at THEN
        NEW.assigned_at := statement_timestamp();
    END IF;
    NEW.updated_at := OLD.updated_at;
    IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := statement_timestamp(); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER crm_lead_keep BEFORE INSERT OR UPDATE ON crm_lead FOR EACH ROW EXECUTE FUNCTION crm_keep_lead();
"""
LET_GO = """
DROP TRIGGER crm_lead_keep ON crm_lead;
DROP FUNCTION crm_keep_lead();
"""


class Migration(migrations.Migration):
    dependencies = [("crm", "0001_initial")]

    operations = [
        composite_foreign_key("crm_lead", "company_id", "crm_company"),
        composite_foreign_key("crm_lead", "assignee_id", "tenants_membership"),
        composite_foreign_key("crm_leadnote", "lead_id", "crm_lead"),
        composite_foreign_key("crm_leadnote", "author_id", "tenants_membership"),
        migrations.RunSQL(KEEP, LET_GO),
    ]
