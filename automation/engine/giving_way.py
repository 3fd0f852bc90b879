"""What to do where somebody else's lock is in the way: come back in a moment, and no attempt is counted."""

from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError

GIVE_WAY = 0.2  # seconds
LOCK_STATES = frozenset({"55P03", "40P01"})  # lock_not_available, deadlock_detected


def met_a_lock(error: DatabaseError | InterfaceError) -> bool:
    """Whether that is why the database refused a transaction."""
    return getattr(error.__cause__, "sqlstate", "") in LOCK_STATES


def in_a_moment(now: datetime) -> datetime:
    """When to come back."""
    return now + timedelta(seconds=GIVE_WAY)
