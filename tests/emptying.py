"""Empties the test database after a test that committed: by DELETE, for which `flush` takes hundreds of milliseconds.

Content types and permissions stay, so nobody has to make them again. Where tables have grown, or the server's user may
not lift the triggers, Django's own TRUNCATE of all tables does it, which also gives the space back.
"""

from functools import cache

from django.core.management.color import no_style
from django.core.management.sql import emit_post_migrate_signal, sql_flush
from django.db import connection, transaction
from psycopg import sql

KEPT = {"django_content_type", "auth_permission"}
GROWN = 64  # pages of a table from which on it isn't only emptied: tests of costs count pages
SIZES = """
SELECT c.relname, pg_relation_size(c.oid) / current_setting('block_size')::int AS pages FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
   AND pg_relation_size(c.oid) > 0
"""


def empty_database() -> None:
    """Leaves no row that a test wrote, and none of a program whose end the test didn't wait for."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES, [_tables()])
        sizes: dict[str, int] = dict(cursor.fetchall())
    if max(sizes.values(), default=0) < GROWN and _may_lift_triggers():
        _delete(sizes)
    else:
        connection.ops.execute_sql_flush(sql_flush(no_style(), connection, reset_sequences=False))
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


def _delete(tables: dict[str, int]) -> None:
    if not tables:
        return
    names = [sql.Identifier(name) for name in tables]
    with transaction.atomic(), connection.cursor() as cursor:
        # As a TRUNCATE would, this waits for whoever is writing: a process that was killed a moment ago.
        cursor.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(sql.SQL(", ").join(names)))
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(name) for name in names))


@cache
def _tables() -> list[str]:
    return sorted(set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT)


@cache
def _may_lift_triggers() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        return cursor.fetchone() == (True,)
