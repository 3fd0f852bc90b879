"""Reads the database's clock, the only one for due times, leases and schedules."""

from datetime import datetime

from automation.store import statements


def now() -> datetime:
    """The database's time at this moment, aware; not the start of the transaction."""
    moment: datetime = statements.value("SELECT automation_now()")
    return moment
