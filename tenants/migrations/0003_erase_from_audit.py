"""An audit entry is never changed, but that words are taken out of its texts when a person is erased."""

from django.db import migrations

APPEND_ONLY_BUT_FOR_ERASING = """
CREATE OR REPLACE FUNCTION tenants_auditentry_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tenants.erasing', true) = 'on'
       AND (NEW.id, NEW.tenant_id, NEW.at, NEW.actor_id, NEW.actor_name, NEW.verb, NEW.target)
           IS NOT DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.at, OLD.actor_id, OLD.actor_name, OLD.verb, OLD.target)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'An audit entry is never changed.' USING ERRCODE = 'restrict_violation';
END $$;
"""
APPEND_ONLY = """
CREATE OR REPLACE FUNCTION tenants_auditentry_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'An audit entry is never changed.' USING ERRCODE = 'restrict_violation';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_slug_help")]

    operations = [migrations.RunSQL(APPEND_ONLY_BUT_FOR_ERASING, APPEND_ONLY)]
