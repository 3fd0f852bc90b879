"""Lets a watch end what a thread waits for: a thread can't be stopped, but its sockets can."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Flight:
    """One conversation of one thread: its deadline, its sockets, and whether anything was sent yet.

    `deadline` is by `time.monotonic()`. `sent` turns True before the first byte of what counts as the message leaves.
    """

    __slots__ = ("_left", "_lock", "_sockets", "deadline", "sent", "shut")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.sent = False
        self.shut = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._left: list[socket.socket] = []

    def remaining(self) -> float:
        """Seconds left, at least 0.001, so that it can serve as a socket's timeout."""
        return max(self.deadline - time.monotonic(), 0.001)

    def over(self) -> bool:
        """Whether the conversation was shut or its time is up."""
        return self.shut or time.monotonic() >= self.deadline

    def add(self, handle: socket.socket) -> None:
        """Puts a socket under the watch; one that comes after the shut is shut at once."""
        with self._lock:
            self._sockets.append(handle)
            if self.shut:
                _shut(handle)

    def leave(self, handle: socket.socket) -> None:
        """Takes over the handle of a closed connection, whose answer may still be on its way, until the end."""
        self._left.append(handle)

    def close(self) -> None:
        """Closes what was left; called once, by the thread itself."""
        for handle in self._left:
            handle.close()

    def end(self) -> None:
        """Shuts all sockets of the conversation, now and later."""
        with self._lock:
            self.shut = True
            for handle in self._sockets:
                _shut(handle)


class Sockets:
    """The conversations of a process by thread id. The pump's watch calls `shut` from its own thread."""

    def __init__(self) -> None:
        self._flights: dict[int, Flight] = {}

    @contextmanager
    def flight(self, deadline: float) -> Iterator[Flight]:
        """Opens this thread's conversation; a thread has one at a time."""
        flight = Flight(deadline)
        thread_id = threading.get_ident()
        self._flights[thread_id] = flight
        _here.flight = flight
        try:
            yield flight
        finally:
            del self._flights[thread_id]
            _here.flight = None
            flight.close()

    def shut(self, thread_id: int) -> bool:
        """Shuts what that thread waits for, which then fails at once; False when it waits for nothing here."""
        flight = self._flights.get(thread_id)
        if flight is None:
            return False
        flight.end()
        return True

    def has_sent(self, thread_id: int) -> bool:
        """Whether what that thread does may have sent anything; True where it has no conversation to ask."""
        flight = self._flights.get(thread_id)
        return flight is None or flight.sent


class _Here(threading.local):
    flight: Flight | None = None


_here = _Here()


def open_flight() -> Flight | None:
    """This thread's conversation, if it has one."""
    return _here.flight


def current_flight() -> Flight:
    """This thread's conversation. Raises RuntimeError outside one: nothing connects past the door."""
    if _here.flight is None:
        raise RuntimeError("Outbound connections are opened through automation.outbound only.")
    return _here.flight


def _shut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):  # already closed by the other side
        handle.shutdown(socket.SHUT_RDWR)
