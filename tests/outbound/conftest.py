"""A door, and servers behind it that misbehave at the level of bytes."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback_servers import Server, running
from outbound_types import MakeDoor, Raw, RawServer, Where

from automation.outbound import Outbound, Policy, Sockets, forget_sessions


@pytest.fixture
def sockets() -> Sockets:
    return Sockets()


@pytest.fixture
def door(sockets: Sockets) -> Iterator[MakeDoor]:
    """Make a door to one endpoint, known as "there"."""

    def make(
        endpoint: str,
        *,
        secret: str | None = "",
        timeout: float = 5.0,
        allow_loopback: bool = True,
        policy: Policy | None = None,
        allowed_hosts: tuple[str, ...] = (),
    ) -> Outbound:
        return Outbound(
            {"there": Where(endpoint, secret, allowed_hosts)}.__getitem__,
            allow_loopback=allow_loopback,
            key="key-1",
            timeout=timeout,
            sockets=sockets,
            policy=policy,
        )

    yield make
    forget_sessions()


class RawServers:
    """TCP servers on loopback; each connection gets a thread, all end together."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.threads: list[threading.Thread] = []

    def start(self, handler: Callable[[socket.socket], object]) -> Raw:
        listener = socket.create_server(("127.0.0.1", 0))
        self._run(self._accept, listener, handler)
        return Raw(listener.getsockname()[1])

    def stop(self) -> None:
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(6)

    def _run(
        self, target: Callable[..., None], sock: socket.socket, handler: Callable[[socket.socket], object]
    ) -> None:
        self.sockets.append(sock)
        thread = threading.Thread(target=target, args=(sock, handler), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, handler: Callable[[socket.socket], object]) -> None:
        with listener, contextlib.suppress(OSError):
            while True:
                self._run(self._answer, listener.accept()[0], handler)

    def _answer(self, client: socket.socket, handler: Callable[[socket.socket], object]) -> None:
        client.settimeout(5)
        with client, contextlib.suppress(OSError):
            handler(client)


@pytest.fixture
def raw_server() -> Iterator[RawServer]:
    """Start TCP servers whose connections are answered by a function."""
    servers = RawServers()
    yield servers.start
    servers.stop()


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Server]:
    with running("webhooks", tmp_path) as server:
        yield server
