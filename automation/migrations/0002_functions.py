"""The functions of store/sql, the settings of the hot tables, immutable versions, and lanes for tenants that exist."""

from pathlib import Path

from django.db import migrations

from tenants.constraints import composite_foreign_key

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

INSERT INTO automation_lane (tenant_id) SELECT t.id FROM tenants_tenant t ON CONFLICT (tenant_id) DO NOTHING;
INSERT INTO automation_limits (tenant_id) SELECT t.id FROM tenants_tenant t ON CONFLICT (tenant_id) DO NOTHING;
"""
BACK = """
DROP TRIGGER IF EXISTS automation_version_immutable ON automation_ruleversion;
DROP FUNCTION IF EXISTS automation_refuse_update();
"""


class Migration(migrations.Migration):
    dependencies = [("automation", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTIONS.read_text(), migrations.RunSQL.noop),
        migrations.RunSQL(TABLES, BACK),
        composite_foreign_key("automation_rule", "published_id", "automation_ruleversion"),
        composite_foreign_key("automation_ruleversion", "rule_id", "automation_rule"),
        composite_foreign_key("automation_ruledraft", "rule_id", "automation_rule"),
    ]
