"""A small HTTP/1.1 server on asyncio: many connections, kept alive, and answers that may hang, trickle or not come."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

LARGEST_HEAD = 64 * 1024
LARGEST_BODY = 4 * 1024 * 1024
EXPECTED = (ConnectionError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError)
POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived: header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, or None."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered. `drop`: the connection is closed instead. `trickle`: byte by byte.

    `hang`: nothing is answered until the other side gives up, then `gone` is called.
    """

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    hang: bool = False
    gone: Callable[[], None] = field(default=lambda: None)
    trickle: tuple[str, float] | None = None  # ("headers" or "body", seconds between two bytes)

    def head(self, *, keep: bool) -> bytes:
        """Status line and headers."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.status} {phrase}", f"Content-Type: {self.kind}", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines.append("Connection: keep-alive" if keep else "Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


Handler = Callable[[Request], Awaitable[Response]]


async def serve(handler: Handler, *, port: int) -> asyncio.Server:
    """Listens on 127.0.0.1; port 0 takes a free one."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*EXPECTED):
            await _conversation(handler, reader, writer)
        writer.close()

    return await asyncio.start_server(connected, "127.0.0.1", port, limit=LARGEST_HEAD, backlog=1024)


def page(text: str) -> Response:
    """An HTML page that may load nothing but this server's own style."""
    return Response(
        body=text.encode("utf-8", "replace"),
        kind="text/html; charset=utf-8",
        headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
    )


async def _conversation(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while (request := await _request(reader)) is not None:
        response = await handler(request)
        if response.drop:
            return
        if response.hang:
            with contextlib.suppress(ConnectionError):
                await reader.read()  # until the other side gives up
            response.gone()
            return
        keep = request.headers.get("connection", "").lower() != "close" and response.trickle is None
        await _answer(response, writer, keep=keep)
        if not keep:
            return


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _colon, value in (line.partition(":") for line in lines if line)
    }
    length = int(headers.get("content-length") or 0)
    if length > LARGEST_BODY:
        raise ValueError("body too large")
    body = await reader.readexactly(length) if length else b""
    return Request(method=method, path=path, headers=headers, body=body)


async def _answer(response: Response, writer: asyncio.StreamWriter, *, keep: bool) -> None:
    head = response.head(keep=keep)
    if response.trickle is None:
        writer.write(head + response.body)
        return
    part, pause = response.trickle
    if part == "body":
        writer.write(head)
        head = b""
    for byte in head + response.body:
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(pause)
