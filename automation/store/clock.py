"""Reads the database's clock, the only one for due times, leases and schedules."""

from datetime import datetime

from django.db import connection


def now() -> datetime:
    """The database's time at this moment, aware; not the start of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT automation_now()")
        moment: datetime = cursor.fetchone()[0]
    return moment
