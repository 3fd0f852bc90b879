"""A connection of the harness's own to the test database, apart from Django's."""

import os
from typing import Any

import psycopg
from psycopg.rows import dict_row

from northwind import database

Row = dict[str, Any]


class Db:
    """Reads and breaks rows behind the engine's back; every statement commits by itself."""

    def __init__(self) -> None:
        self.connection = psycopg.connect(os.environ[database.VARIABLE], autocommit=True, row_factory=dict_row)

    def rows(self, sql: str, *params: Any) -> list[Row]:
        """All rows of a query."""
        return self.connection.execute(sql, params).fetchall()

    def row(self, sql: str, *params: Any) -> Row:
        """The one row of a query."""
        found = self.rows(sql, *params)
        assert len(found) == 1, f"{len(found)} rows for {sql}"
        return found[0]

    def value(self, sql: str, *params: Any) -> Any:
        """The first column of the first row; None where there is none."""
        found = self.connection.execute(sql, params).fetchone()
        return next(iter(found.values())) if found else None

    def run(self, sql: str, *params: Any) -> int:
        """Executes a statement and answers how many rows it touched."""
        return self.connection.execute(sql, params).rowcount

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()
