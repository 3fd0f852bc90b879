"""What really arrived: one JSON line for each request, written when it is over; the oracle of experiments."""

import hashlib
import json
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOWN_ON_PAGE = 200


@dataclass(frozen=True, slots=True)
class Arrival:
    """An open entry: when the request came (seconds since 1970), and how many were then in hand, this one included."""

    t_start: float
    running: int


class Ledger:
    """Appends entries to a file, each flushed; keeps the newest for the page. Belongs to one event loop."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._running = 0
        self._seen: set[str] = set()
        self.newest: deque[dict[str, Any]] = deque(maxlen=SHOWN_ON_PAGE)

    def open(self) -> Arrival:
        """Notes that a request has come."""
        self._running += 1
        return Arrival(t_start=time.time(), running=self._running)

    def first_time(self, key: str) -> bool:
        """Whether this key is new; without a key every request is."""
        if not key:
            return True
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def close(
        self,
        arrival: Arrival,
        *,
        key: str,
        path: str,
        raw: bytes,
        body: Any,
        answer: int | None,
        shown: bool,
        **more: Any,
    ) -> None:
        """Writes the entry. `answer` is the status, None where the connection was closed without one (`dropped`)."""
        self._running -= 1
        entry = {
            "t_start": arrival.t_start,
            "t_end": time.time(),
            "key": key,
            "path": path,
            "body_sha256": hashlib.sha256(raw).hexdigest(),
            "body": body,
            "answer": answer,
            "dropped": answer is None,
            "shown": shown,
            "running": arrival.running,
            **more,
        }
        self._file.write(json.dumps(entry, ensure_ascii=True) + "\n")
        self.newest.appendleft(entry)

    def finish(self) -> None:
        """Closes the file."""
        self._file.close()
