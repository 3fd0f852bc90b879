"""Gives a query only so long: what a page would like to know must not keep it."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled


class TookTooLong(Exception):
    """The database stopped a query because its time was over."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Has the database stop each query in the block after so long; raises `TookTooLong`, nothing else is undone."""
    try:
        with transaction.atomic():
            before = _set_timeout(f"{max(1, round(seconds * 1000))}ms")
            yield
            _set_timeout(before)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TookTooLong from error
        raise


def _set_timeout(value: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)", [value]
        )
        before: str = cursor.fetchone()[0]
    return before
