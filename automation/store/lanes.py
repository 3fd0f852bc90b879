"""Writes a tenant's share of the workers: its pool, its cap and its weight."""

from django.db import connection


def set_share(tenant_id: int, *, pool: str, max_running: int, weight: int) -> None:
    """Gives a lane its share. One that may claim again, or in another pool, joins the line where that stands now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_lane x SET pool = %(pool)s, max_running = %(cap)s, weight = %(weight)s,"
            " stride_pass = CASE WHEN x.pool = %(pool)s AND (x.runnable OR x.running >= %(cap)s) THEN x.stride_pass"
            " ELSE automation_join_pass(%(pool)s, x.stride_pass) END WHERE x.tenant_id = %(tenant)s",
            {"pool": pool, "cap": max_running, "weight": weight, "tenant": tenant_id},
        )
