"""Runs several processes as one: their output in one stream, and when one dies or a signal comes, all of them end."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from northwind.database import VARIABLE, is_embedded
from northwind.guardian import is_there

ROOT = Path(__file__).resolve().parent.parent
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL = 0.1  # seconds
CHUNK = 65536


class PartDiedError(RuntimeError):
    """A process of the tree ended by itself; the text names it and says how."""


@dataclass(eq=False)
class Part:
    """One process of a tree, the leader of a group and session of its own. `lines` are the last it said."""

    name: str
    process: subprocess.Popen[bytes]
    grace: float
    lines: list[str] = field(default_factory=list)
    _rest: bytes = b""

    @property
    def pid(self) -> int:
        """The process's id, which is also its group's."""
        return self.process.pid

    def take(self, data: bytes) -> list[str]:
        """Turns what came through the pipe into whole lines."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        found = [line.decode("utf-8", "replace").rstrip() for line in whole]
        self.lines = [*self.lines, *found][-50:]
        return found


class ProcessTree:
    """Starts parts in order and stops them in the reverse order; a context manager that leaves nothing behind.

    `say(name, line)` gets every line of output. A guardian in a session of its own ends the parts if this process is
    killed. Use it from the main thread only: it minds signals while it is open.
    """

    def __init__(self, say: Callable[[str, str], None], environment: Mapping[str, str] | None = None) -> None:
        self.say = say
        self.environment = dict(os.environ if environment is None else environment)
        self.parts: list[Part] = []
        self.asked: list[int] = []
        self._selector = selectors.DefaultSelector()
        self._guardian: subprocess.Popen[bytes] | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "ProcessTree":
        for number in STOPPING:
            self._before[number] = signal.signal(number, self._ask)
        # It may start the embedded server by itself, so it gets no address of it.
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", "northwind.guardian"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != VARIABLE or not is_embedded()},
        )
        if self._guardian.stdout is None or not self._guardian.stdout.readline():
            raise PartDiedError("the guardian did not start")
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self.stop()
        finally:
            if self._guardian is not None:
                for pipe in (self._guardian.stdin, self._guardian.stdout):
                    with contextlib.suppress(BrokenPipeError):
                        _close(pipe)
                self._guardian.wait()
            self._selector.close()
            for number, before in self._before.items():
                signal.signal(number, before)  # type: ignore[arg-type]

    def start(
        self, name: str, command: Sequence[str], *, grace: float = 10.0, environment: Mapping[str, str] | None = None
    ) -> Part:
        """Starts a part; `grace` is how many seconds it gets to end when asked, before it is killed."""
        process = subprocess.Popen(  # noqa: S603 commands of this product
            command,
            cwd=ROOT,
            env=self.environment | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.write(b"%d\n" % process.pid)
            self._guardian.stdin.flush()
        part = Part(name, process, grace)
        self.parts.append(part)
        self._selector.register(_pipe(part), selectors.EVENT_READ, part)
        return part

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Runs a part to its end; `PartDiedError` when it fails."""
        part = self.start(name, command, environment=environment)
        while part.process.poll() is None and not self.asked:
            self._read(POLL)
        self.read()
        self.parts.remove(part)
        self._forget(part)
        if self.asked:
            _end_now(part)
        elif part.process.returncode:
            raise PartDiedError(f"{name} ended with {part.process.returncode}")

    def wait_for(self, part: Part, ready: Callable[[str], bool], *, seconds: float = 60.0) -> str:
        """Waits for the first line that is `ready`, and answers it; empty when a signal asked to stop meanwhile."""
        seen, ends_at = 0, time.monotonic() + seconds
        while not self.asked:
            for line in part.lines[seen:]:
                if ready(line):
                    return line
            seen = len(part.lines)
            self.turn()
            if time.monotonic() > ends_at:
                raise PartDiedError(f"{part.name} was not ready after {seconds:.0f} seconds")
        return ""

    def turn(self, seconds: float = POLL) -> bool:
        """Passes output on for a moment; False when a signal asked to stop. `PartDiedError` when a part has ended."""
        self._read(seconds)
        for part in self.parts:
            if part.process.poll() is not None:
                self.read()
                raise PartDiedError(f"{part.name} ended with {part.process.returncode}")
        return not self.asked

    def stop(self) -> None:
        """Ends all parts, the newest first."""
        while self.parts:
            self.end(self.parts[-1])

    def end(self, part: Part) -> None:
        """Ends one part by SIGTERM, and after its grace by SIGKILL for its whole group."""
        self.parts.remove(part)
        part.process.send_signal(signal.SIGTERM)
        ends_at = time.monotonic() + part.grace
        while part.process.poll() is None and time.monotonic() < ends_at:
            self._read(POLL / 2)
        self.read()
        _end_now(part)
        self._forget(part)

    def read(self) -> None:
        """Passes on what is there already."""
        while self._read(0):
            pass

    def _read(self, seconds: float) -> bool:
        if not self._selector.get_map():
            time.sleep(seconds)
            return False
        found = self._selector.select(seconds)
        for key, _mask in found:
            data = os.read(key.fd, CHUNK)
            if not data:
                self._selector.unregister(key.fileobj)
            for line in key.data.take(data):
                self.say(key.data.name, line)
        return bool(found)

    def _forget(self, part: Part) -> None:
        pipe = _pipe(part)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(pipe)
        pipe.close()

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        self.asked.append(number)


def _end_now(part: Part) -> None:
    """Kills what is left of the group, its leader included."""
    if part.process.poll() is None or is_there(part.pid):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(part.pid, signal.SIGKILL)
    part.process.wait()


def _pipe(part: Part) -> IO[bytes]:
    if part.process.stdout is None:
        raise PartDiedError(f"{part.name} has no output")
    return part.process.stdout


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()
