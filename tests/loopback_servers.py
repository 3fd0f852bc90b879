"""Starts the real loopback servers as processes of their own, for tests."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Server:
    """A running server: its ports, its ledger and its script."""

    process: subprocess.Popen[str]
    port: int
    ledger: Path
    script: Path
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def entries(self, count: int = 0) -> list[dict[str, Any]]:
        """What arrived so far; a server writes an entry before it answers, so what was answered is there."""
        lines = self.ledger.read_text().splitlines()
        assert len(lines) >= count, f"{len(lines)} entries in the ledger, not {count}"
        return [json.loads(line) for line in lines]

    def prescribe(self, *answers: Any, match: str = "", last: str = "") -> None:
        """Prescribe the answers for requests that contain a text."""
        self.script.write_text(json.dumps([{"match": match, "answers": list(answers), "last": last}]))


@contextmanager
def running(name: str, directory: Path, *options: str) -> Iterator[Server]:
    """Run one server until the end of the block."""
    ledger, script = directory / f"{name}.jsonl", directory / f"{name}.script.json"
    command = [sys.executable, "-m", "northwind.loopback", name, "--ledger", str(ledger), "--script", str(script)]
    process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ports = json.loads(process.stdout.readline())
        yield Server(process=process, port=ports["port"], ledger=ledger, script=script, ports=ports)
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


StartServer = Callable[..., Server]
