"""Starts the receivers that stand for the outside as parts of a process tree, and says where each listens."""

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from northwind.process_tree import ProcessTree

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Say whether a server could listen on the port of this machine now."""
    with closing(socket.socket()) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(wanted: int) -> int:
    """The port if it is free, else another one that is."""
    if is_free(wanted):
        return wanted
    with closing(socket.socket()) as door:
        door.bind((HOST, 0))
        return int(door.getsockname()[1])


def start_receiver(
    tree: ProcessTree, name: str, *, ledgers: Path, port: int = 0, options: Sequence[str] = ()
) -> Mapping[str, int]:
    """Start one receiver and wait until it listens; answer its ports by name, none when a signal came meanwhile."""
    where = ["--ledger-dir", str(ledgers)] if name == "page" else ["--ledger", str(ledgers / f"{name}.jsonl")]
    command = [sys.executable, "-m", "northwind.loopback", name, "--port", str(port), *where, *options]
    part = tree.start(name, command)
    line = tree.wait_for(part, lambda line: line.startswith('{"port"'))
    ports: dict[str, int] = json.loads(line) if line else {}
    return ports


def web_address(port: int) -> str:
    """The address of a server on that port."""
    return f"http://{HOST}:{port}"
