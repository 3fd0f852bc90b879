"""The functions of store/sql, the settings of the hot tables, immutable versions, and lanes for tenants that exist."""

from pathlib import Path

from django.db import migrations

FUNCTIONS = Path(__file__).resolve().parent.parent / "store" / "sql" / "functions.sql"

TABLES = """
ALTER TABLE automation_lane SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50,
                                 autovacuum_vacuum_cost_limit = 2000);
ALTER TABLE automation_timer SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 50,
                                  autovacuum_vacuum_cost_limit = 2000);
ALTER TABLE automation_worker SET (fillfactor = 50);

-- A published version never changes: runs pin it.
CREATE OR REPLACE FUNCTION automation_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a row of % is immutable', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER automation_version_immutable BEFORE UPDATE ON automation_ruleversion
  FOR EACH ROW EXECUTE FUNCTION automation_refuse_update();

-- A rule belongs to the tenant of its version and draft: the database says so too.
ALTER TABLE automation_ruleversion ADD CONSTRAINT automation_version_same_tenant
  FOREIGN KEY (tenant_id, rule_id) REFERENCES automation_rule (tenant_id, id);
ALTER TABLE automation_ruledraft ADD CONSTRAINT automation_draft_same_tenant
  FOREIGN KEY (tenant_id, rule_id) REFERENCES automation_rule (tenant_id, id);

INSERT INTO automation_lane (tenant_id) SELECT t.id FROM tenants_tenant t ON CONFLICT (tenant_id) DO NOTHING;
INSERT INTO automation_limits (tenant_id) SELECT t.id FROM tenants_tenant t ON CONFLICT (tenant_id) DO NOTHING;
"""
BACK = """
DROP TRIGGER IF EXISTS automation_version_immutable ON automation_ruleversion;
DROP FUNCTION IF EXISTS automation_refuse_update();
ALTER TABLE automation_ruleversion DROP CONSTRAINT IF EXISTS automation_version_same_tenant;
ALTER TABLE automation_ruledraft DROP CONSTRAINT IF EXISTS automation_draft_same_tenant;
"""


class Migration(migrations.Migration):
    dependencies = [("automation", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTIONS.read_text(), migrations.RunSQL.noop),
        migrations.RunSQL(TABLES, BACK),
    ]
