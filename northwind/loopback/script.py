"""Answers that a test or a demo prescribes: which request gets what, the first time, the second time, and so on."""

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One prescribed answer.

    `kind`: `ok` (the server's usual answer), `status`, `hang` (no answer until the other side gives up), `drop` (taken,
    then the connection is closed), `trickle` (one byte every `every_ms`, of the headers or the body as `part` says).
    """

    kind: str = "ok"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    part: str = "headers"
    every_ms: int = 50
    at: str = "data"


class Script:
    """A JSON file: `[{"match": "text", "answers": [503, 503, {"status": 429, "retry_after": "7"}, "hang", "ok"]}]`.

    An entry holds for requests whose key, path or body contains `match` (an empty text: all requests). Its answers are
    given one after the other to the requests of one key, then the usual answer; `"last": "repeat"` repeats the last.
    The file is read again when it changes, so a test may write it while the server runs.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read_at = 0
        self._entries: list[dict[str, Any]] = []
        self._given: Counter[tuple[str, str]] = Counter()

    def reply(self, *, key: str, text: str) -> Reply:
        """The next answer for a request; the usual one where nothing is prescribed."""
        for entry in self._current():
            match = str(entry.get("match", ""))
            if match in key or match in text:
                return self._next(entry, (match, key))
        return Reply()

    def _next(self, entry: dict[str, Any], place: tuple[str, str]) -> Reply:
        answers = entry.get("answers", [])
        given = self._given[place]
        self._given[place] += 1
        if answers and entry.get("last") == "repeat":
            given = min(given, len(answers) - 1)
        return _reply(answers[given]) if given < len(answers) else Reply()

    def _current(self) -> list[dict[str, Any]]:
        if self._path is None or not self._path.exists():
            return []
        changed = self._path.stat().st_mtime_ns
        if changed != self._read_at:
            self._entries = json.loads(self._path.read_text(encoding="utf-8"))
            self._read_at = changed
        return self._entries


class Drops:
    """Decides for each accepted request, from a seed alone, whether its connection is closed without an answer."""

    def __init__(self, *, share: float, seed: int) -> None:
        self._share = share
        self._chance = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def next(self) -> bool:
        """Whether the next accepted request goes unanswered."""
        return self._share > 0 and self._chance.random() < self._share


def _reply(answer: Any) -> Reply:
    if isinstance(answer, int):
        return Reply(kind="status", status=answer)
    if isinstance(answer, str):
        return Reply(kind=answer)
    headers = {str(name): str(value) for name, value in answer.get("headers", {}).items()}
    if "retry_after" in answer:
        headers["Retry-After"] = str(answer["retry_after"])
    known = {name: answer[name] for name in ("status", "body", "part", "every_ms", "at") if name in answer}
    return Reply(kind=answer.get("kind", "status"), headers=headers, **known)
