"""Saves one record and captures what the save did to it, with one statement for reading, locking and writing."""

from typing import Any

from django.db import models
from django.db.models import sql

from automation.catalog.automatable import Automatable
from automation.engine.capture import record_difference
from automation.engine.changes import Reading
from automation.engine.reading import reader_of


def update_captured(entry: Automatable, row: "models.QuerySet[models.Model]", values: Any) -> bool:
    """Carry out Django's UPDATE of a row, given by its key, and write the event. False where there is no such row."""
    found = update_read(entry, row, values)
    if found is None:
        return False
    key, before, after = found
    record_difference(entry, {key: before}, {key: after})
    return True


def update_read(
    entry: Automatable, row: "models.QuerySet[models.Model]", values: Any
) -> tuple[int, Reading, Reading] | None:
    """Carry out Django's UPDATE of a row, given by its key: (key, its columns before, all paths after), or None."""
    query: Any = row.query.chain(sql.UpdateQuery)
    query.add_update_fields(values)
    statement, params = query.get_compiler(row.db).as_sql()
    head, where, condition = statement.rpartition(" WHERE ")
    if not where or condition.count("%s") != 1:
        raise NotImplementedError(f"Django updates a row in a new way, which can't be captured: {statement}")
    key = params[-1]
    found = reader_of(entry).update(head, params[:-1], key)
    return None if found is None else (key, *found)


def capture_new(entry: Automatable, key: int) -> None:
    """Write the event of a row that was just inserted."""
    record_difference(entry, {}, reader_of(entry).read([key]))
