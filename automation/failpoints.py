"""Named places in the engine where a test stops, fails, delays or kills the process; a no-op everywhere else."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

POINTS = frozenset(
    {
        "capture.row_written",
        "capture.committed",
        "match.claimed",
        "match.local_step",
        "match.before_commit",
        "claim.committed",
        "intent.committed",
        "effect.before_send",
        "effect.replied",
        "settle.before_commit",
        "settle.committed",
        "reap.selected",
        "pause.seen",
        "backtest.judged",
    }
)
FAIL, RACE, TESTS = "AUTOMATION_FAIL", "AUTOMATION_RACE", "AUTOMATION_TESTS"
RACE_WAIT = 10.0  # seconds that the first of two waits for the other
RACE_LOOK = 0.001
ENTRY = re.compile(r"(?P<point>[a-z_.]+):(?P<verb>kill|raise|stop|sleep ?(?P<ms>\d+))(?:@(?P<nth>[1-9]\d*))?", re.ASCII)


class FailpointError(RuntimeError):
    """What a failpoint raises on purpose, and what a wrong or forbidden setting raises at start-up."""


@dataclass(slots=True)
class Armed:
    """What is to happen at one point: `verb`, for `sleep` the seconds, and `nth` to act only that time it is passed."""

    verb: str
    seconds: float = 0.0
    nth: int | None = None
    passed: int = 0


def hit(point: str) -> None:
    """Marks a place. Costs a look into an empty dict unless a test has armed something."""
    if _armed:
        _act(point)
    if _races:
        _meet(point)


def parse(text: str) -> dict[str, list[Armed]]:
    """Reads `<point>:<kill|raise|stop|sleep ms>[@n]`, several separated by commas. Raises FailpointError."""
    armed: dict[str, list[Armed]] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        found = ENTRY.fullmatch(entry)
        if found is None or found["point"] not in POINTS:
            raise FailpointError(f"{FAIL} has no meaning at {entry!r}; points are {', '.join(sorted(POINTS))}")
        verb = found["verb"] if found["ms"] is None else "sleep"
        nth = int(found["nth"]) if found["nth"] else None
        armed.setdefault(found["point"], []).append(Armed(verb=verb, seconds=int(found["ms"] or 0) / 1000, nth=nth))
    return armed


def parse_races(text: str) -> dict[str, Path]:
    """Reads `<point>:<directory>`, several separated by commas. Raises FailpointError."""
    races: dict[str, Path] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        point, _colon, directory = entry.partition(":")
        if point not in POINTS or not directory:
            raise FailpointError(f"{RACE} has no meaning at {entry!r}")
        races[point] = Path(directory)
    return races


@contextmanager
def arm(text: str) -> Iterator[None]:
    """Arms points in this process for a while; for tests only. Raises FailpointError elsewhere."""
    _allow(os.environ)
    before = dict(_armed)
    _armed.clear()
    _armed.update(parse(text))
    try:
        yield
    finally:
        _armed.clear()
        _armed.update(before)


def _allow(environment: Mapping[str, str]) -> None:
    if environment.get(TESTS) != "1":
        raise FailpointError(f"Failpoints work in tests only: {TESTS} isn't 1.")


def _act(point: str) -> None:
    for armed in _armed.get(point, ()):
        with _lock:
            armed.passed += 1
            due = armed.nth is None or armed.passed == armed.nth
        if due:
            _do(armed, point)


def _do(armed: Armed, point: str) -> None:
    if armed.verb == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif armed.verb == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif armed.verb == "sleep":
        time.sleep(armed.seconds)
    else:
        raise FailpointError(f"raised on purpose at {point}")


def _meet(point: str) -> None:
    """Waits at a race point until a second process has come to it. Later passes and further processes go on at once."""
    with _lock:
        directory = _races.pop(point, None)
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    first, second = directory / f"{point}.1", directory / f"{point}.2"
    for place in (first, second):
        with suppress(FileExistsError):
            place.touch(exist_ok=False)
            break
    give_up = time.monotonic() + RACE_WAIT
    while not second.exists():
        if time.monotonic() > give_up:
            raise FailpointError(f"no second process came to {point}")
        time.sleep(RACE_LOOK)


_lock = threading.Lock()
_armed = parse(os.environ.get(FAIL, ""))
_races = parse_races(os.environ.get(RACE, ""))
if _armed or _races:
    _allow(os.environ)
