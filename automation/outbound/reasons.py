"""Says in one safe sentence why no answer came; library messages are never passed on, because they contain URLs."""

import socket
import ssl
from collections.abc import Iterator

import requests
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from automation.outbound.answers import Failing, OutboundError
from automation.outbound.sockets import Flight


def transport_error(error: Exception, *, host: str, flight: Flight) -> OutboundError:
    """Turns a failure without an answer into `retry` when nothing had been sent, else into `maybe`."""
    failing: Failing = "maybe" if flight.sent else "retry"
    if isinstance(error, requests.exceptions.InvalidHeader | UnicodeError):
        return OutboundError("A header of the request has characters that can't be sent.", failing="rejected")
    causes = list(_chain(error))
    timed_out = flight.over() or any(isinstance(cause, TimeoutError | requests.Timeout) for cause in causes)
    return OutboundError(
        _sentence(causes, host=host, timed_out=timed_out, sent=flight.sent), failing=failing, timed_out=timed_out
    )


def _sentence(causes: list[BaseException], *, host: str, timed_out: bool, sent: bool) -> str:
    if any(isinstance(cause, NameResolutionError | socket.gaierror) for cause in causes):
        return f"The name {host} can't be resolved."
    if any(isinstance(cause, ConnectTimeoutError) and not isinstance(cause, NewConnectionError) for cause in causes):
        return f"{host} didn't accept a connection in time."
    if timed_out:
        return f"{host} didn't answer in time." if sent else f"{host} didn't accept a connection in time."
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if tls is not None:
        return f"The secure connection to {host} failed: {tls.reason or 'handshake'}."
    if sent:
        return f"{host} closed the connection without an answer."
    system = next(
        (cause.strerror for cause in causes if isinstance(cause, OSError) and cause.errno and cause.strerror), None
    )
    return f"No connection to {host}: {system}." if system else f"No connection to {host}."


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it came from, through causes, contexts and the reasons that urllib3 nests."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        found = waiting.pop()
        if not isinstance(found, BaseException) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [found.__cause__, found.__context__, getattr(found, "reason", None), *found.args]
