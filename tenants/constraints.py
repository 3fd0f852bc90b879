"""Foreign keys of the database that include the tenant."""

from django.db import migrations


def composite_foreign_key(table: str, column: str, target_table: str) -> migrations.RunSQL:
    """Return the migration step that lets `column` point only to a row of the same tenant.

    `target_table` needs a unique constraint on (tenant_id, id). Give the model's own foreign key
    `db_constraint=False`, since this one includes it. A null column points nowhere and is allowed. It is checked
    at the commit, as Django's own are.
    """
    name = f"{table}_{column}_tenant_fk"
    return migrations.RunSQL(
        sql=f'ALTER TABLE "{table}" ADD CONSTRAINT "{name}" FOREIGN KEY (tenant_id, "{column}") '
        f'REFERENCES "{target_table}" (tenant_id, id) DEFERRABLE INITIALLY DEFERRED',
        reverse_sql=f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"',
    )
