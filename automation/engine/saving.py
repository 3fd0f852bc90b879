"""Saves one record and captures what the save did to it, with one statement for reading, locking and writing."""

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import sql

from automation.catalog.automatable import Automatable
from automation.engine.capture import record_difference
from automation.engine.changes import Reading
from automation.engine.reading import reader_of


class Saving:
    """One save of a record under way: what its UPDATE said of it, nothing where it was an INSERT."""

    def __init__(self, entries: Iterable[Automatable]) -> None:
        self.entries = tuple(entries)
        self._before: dict[int, Reading] = {}
        self._after: dict[int, Reading] = {}

    def update(self, row: "models.QuerySet[models.Model]", values: Any) -> bool:
        """Carry out Django's UPDATE of a row, given by its key, and note it before and after. False without a row."""
        query: Any = row.query.chain(sql.UpdateQuery)
        query.add_update_fields(values)
        statement, params = query.get_compiler(row.db).as_sql()
        head, where, condition = statement.rpartition(" WHERE ")
        key = params[-1]
        if not where or condition.count("%s") != 1:
            raise NotImplementedError(f"Django updates a row in a new way, which can't be captured: {statement}")
        found = reader_of(self.entries[0]).update(head, params[:-1], key)
        if found is None:
            return False
        self._before[key], self._after[key] = found
        return True

    def record(self, key: int) -> None:
        """Capture the difference; called after the save."""
        for entry in self.entries:
            after = self._after or reader_of(entry).read([key])
            record_difference(entry, self._before, after)
