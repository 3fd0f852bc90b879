"""Goes through the stored events that a backtest judges, in an order that an index knows, from where it stopped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from automation.store import backtests
from automation.store.backtests import Behind, Span
from automation.store.events import EventRow

AT_ONCE = 500


@dataclass(slots=True)
class StoredEvents:
    """The newest events of some models: for each model those of records in their order, then those without one.

    `place` is [model, "records" or "others", record, event id] behind which it goes on; None at the beginning.
    """

    tenant_id: int
    models: Sequence[str]
    kinds: Sequence[str]
    since: datetime
    within: Span
    place: Any = None
    ended: bool = False

    def batches(self) -> Iterator[list[EventRow]]:
        """Batches of events; after each, `place` is behind it. Never an empty one."""
        for model, part in self._parts():
            while found := self._next(model, part):
                last = found[-1]
                self.place = [model, part, last.record or 0, last.id]
                yield found
        self.ended = True

    def _next(self, model: str, part: str) -> list[EventRow]:
        record, event = self.place[2:] if self.place and self.place[:2] == [model, part] else (0, 0)
        behind = Behind(model, record if part == "records" else None, event)
        return backtests.batch(self.tenant_id, behind, self.within, kinds=self.kinds, since=self.since, limit=AT_ONCE)

    def _parts(self) -> list[tuple[str, str]]:
        parts = [(model, part) for model in self.models for part in ("records", "others")]
        return parts[parts.index((self.place[0], self.place[1])) :] if self.place else parts
