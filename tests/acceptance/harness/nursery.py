"""A process that has every library loaded and forks programs: run as `python -m acceptance.harness.nursery`.

To read the libraries takes most of the second in which a fresh interpreter gets to `run_workers`, and is the same each
time. What is ours is loaded in the fork, under the settings that the fork is given: nothing of it is shared.
"""

import gc
import importlib
import json
import os
import random
import runpy
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED_BY_NONE = {"automation", "northwind", "tenants", "django_q"}  # the queue reads its settings when it is loaded
OURS = SHARED_BY_NONE | {"acceptance", "__main__", "__mp_main__"}
ROOT = Path(__file__).resolve().parents[3]
LOOK = 0.02


class Nursery:
    """The process, as those see it who start programs by it."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "acceptance.harness.nursery"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, argv: list[str], environ: dict[str, str], log: Path) -> "Started":
        """Runs a script of the checkout in a session of its own; `log` gets what it writes."""
        return Started(self, int(self.ask({"argv": argv, "environ": environ, "log": str(log)})))

    def ask(self, question: dict[str, Any]) -> Any:
        """One question and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery has ended"
        return json.loads(answer)

    def close(self) -> None:
        """Ends it; what it started goes on."""
        self._process.communicate()


@dataclass
class Started:
    """A program that was started so, with what is used of a Popen."""

    nursery: Nursery
    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self.nursery.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Its exit code once it has ended; TimeoutExpired when that takes longer."""
        ends_at = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > ends_at:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(LOOK)
        return code


def main() -> None:
    """Answers until nobody asks any more; in a fork, becomes the program that was asked for."""
    names = _libraries()
    del os.environ["DJANGO_SETTINGS_MODULE"]
    for name in names:
        with suppress(Exception):  # what wants settings or models is left to the fork
            importlib.import_module(name)
    loaded = {name.partition(".")[0] for name in sys.modules} & SHARED_BY_NONE
    assert not loaded, f"{loaded} would be the same in every fork, whatever its settings"
    gc.collect()
    gc.freeze()
    asked = _serve()
    if asked is not None:
        _become(**asked)


def _libraries() -> list[str]:
    """All that the workers load and isn't ours, as a fork finds out by loading it."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        importlib.import_module("django").setup()
        importlib.import_module("automation.workers")
        with os.fdopen(writing, "w") as out:
            json.dump([name for name in sys.modules if name.partition(".")[0] not in OURS], out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as found:
        names: list[str] = json.load(found)
    os.wait()
    return names


def _serve() -> dict[str, Any] | None:
    for line in sys.stdin:
        question = json.loads(line)
        answer: int | None
        if "ended" in question:
            pid, status = os.waitpid(question["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                return question  # type: ignore[no-any-return]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return None


def _become(argv: list[str], environ: dict[str, str], log: str) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environ)
    for number, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, log, os.O_WRONLY | os.O_APPEND),
        (2, log, os.O_WRONLY | os.O_APPEND),
    ):
        opened = os.open(path, mode)
        os.dup2(opened, number)
        os.close(opened)
    random.seed()
    sys.argv = argv
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
