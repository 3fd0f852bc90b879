"""Stands the engine's clock still inside a test's transaction, and moves it."""

from datetime import datetime, timedelta

from django.db import connection

from automation.store import clock


class StoppedClock:
    """The clock of due times: it stands, and goes only where the test moves it, until the transaction ends."""

    def __init__(self) -> None:
        self.at = clock.now()
        self.set(self.at)

    def set(self, at: datetime) -> None:
        """Moves it to a moment."""
        self.at = at
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE OR REPLACE FUNCTION automation_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
                f" $$ SELECT timestamptz '{at.isoformat()}' $$"
            )

    def forward(self, seconds: float) -> datetime:
        """Moves it ahead."""
        self.set(self.at + timedelta(seconds=seconds))
        return self.at
