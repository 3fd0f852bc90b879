"""The shapes of the fixtures for outbound tests."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from automation.outbound import Outbound


@dataclass(frozen=True)
class Where:
    """A connection as plain values."""

    endpoint: str
    secret: str | None = ""
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Raw:
    """A TCP server whose every connection is answered by one function."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


MakeDoor = Callable[..., Outbound]
RawServer = Callable[[Callable[[socket.socket], object]], Raw]
