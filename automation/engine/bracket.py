"""Reads records before and after a write, and captures what the write did to them, in one transaction with it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import models, transaction

from automation.catalog.automatable import Automatable
from automation.engine.capture import record_difference
from automation.engine.changes import Reading
from automation.engine.links import Link
from automation.engine.reading import reader_of

Ids = Iterable[int | None]

# The brackets that are open around this moment, outermost first.
_open: ContextVar["tuple[Bracket, ...]"] = ContextVar("automation_brackets", default=())


class Bracket:
    """The records that a write may touch. Which ones is said before it, and of new ones after it."""

    def __init__(self) -> None:
        self._touched: dict[str, tuple[Automatable, set[int], dict[int, Reading]]] = {}

    def before(self, link: Link, ids: Ids, *, whole: bool = False) -> None:
        """Lock records and read them as they are before the write.

        `whole` reads what isn't in their own row, too: for parts, whose number or set is what changes, and for records
        that may be deleted, whose last snapshot is read now or never. What an outer bracket has read already is left
        to it: it captures the whole difference when it closes.
        """
        _entry, known, readings = self._of(link.entry)
        new = sorted({pk for pk in ids if pk is not None} - known - _covered(link.entry))
        if not new:
            return
        reader = reader_of(link.entry)
        locked = reader.lock(new)
        if (whole or link.is_part) and not reader.is_flat and locked:
            locked = reader.read(list(locked))
        known.update(new)
        readings.update(locked)

    def made(self, links: Iterable[Link], ids: Iterable[int]) -> None:
        """Name records that the write made."""
        for link in links:
            self._of(link.entry)[1].update(ids)

    def record(self) -> None:
        """Capture the difference. Called after the write."""
        for entry, ids, before in self._touched.values():
            after = reader_of(entry).read(sorted(ids))
            record_difference(entry, before, after)

    def has_read(self, entry: Automatable) -> set[int]:
        """The records of an entry that this bracket answers for."""
        return self._of(entry)[1]

    def _of(self, entry: Automatable) -> tuple[Automatable, set[int], dict[int, Reading]]:
        return self._touched.setdefault(entry.name, (entry, set(), {}))


@contextmanager
def bracket() -> Iterator[Bracket]:
    """One transaction around reading, writing and capturing; inside an open one it adds no savepoint."""
    with transaction.atomic(savepoint=False):
        touched = Bracket()
        token = _open.set((*_open.get(), touched))
        try:
            yield touched
        finally:
            _open.reset(token)
        touched.record()


def _covered(entry: Automatable) -> set[int]:
    return set().union(*(outer.has_read(entry) for outer in _open.get()[:-1]))


def linked_ids(link: Link, rows: "models.QuerySet[models.Model]") -> set[int | None]:
    """The records that some rows belong to."""
    return set(rows.order_by().values_list(link.attname, flat=True))
