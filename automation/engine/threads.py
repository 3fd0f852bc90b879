"""The threads of a pump that wait for the outside: they hold no connection to the database and never touch the ORM."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from automation import failpoints
from automation.catalog.action import Outcome
from automation.engine.effects import EffectCall, Finished, guarded
from automation.outbound.door import Outbound
from automation.outbound.sockets import Sockets

log = structlog.get_logger(__name__)
FENCED = "The worker's lease was about to end: nothing was sent."
HUNG = "The step did not return within its time."
UNSENT = "No connection was made within the step's time: nothing was sent."
HUNG_GRACE = 0.5  # seconds that a thread has to return after its socket was shut


@dataclass(slots=True)
class Flight:
    """An effect that a thread is doing, and since when by the monotonic clock."""

    call: EffectCall
    thread_id: int
    ends_at: float
    shut: bool = False
    given_up: bool = False


@dataclass(slots=True)
class ThreadDoor:
    """A fixed number of threads; `bell` is set whenever one comes back, so that the pump needn't poll for it."""

    threads: int
    allow_loopback: bool
    may_start: Callable[[EffectCall], bool]  # asked right before an effect begins: does the lease last for it?
    bell: threading.Event = field(default_factory=threading.Event)
    sockets: Sockets = field(default_factory=Sockets)
    _jobs: "queue.SimpleQueue[EffectCall | None]" = field(default_factory=queue.SimpleQueue)
    _done: "deque[Finished]" = field(default_factory=deque)
    _flights: dict[int, Flight] = field(default_factory=dict)
    _in_hand: dict[int, EffectCall] = field(default_factory=dict)  # by timer, until its outcome is fetched
    _waiting: int = 0
    hung: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Starts the threads; called after the fork, never at import."""
        for number in range(self.threads):
            threading.Thread(target=self._work, name=f"effect-{number}", daemon=True).start()

    def free(self) -> int:
        """How many more effects can begin at once."""
        with self._lock:
            return max(0, self.threads - len(self._flights) - self._waiting)

    def busy(self) -> int:
        """How many effects are on their way or have come back unsettled."""
        with self._lock:
            return len(self._flights) - self.hung + self._waiting + len(self._done)

    def calls(self) -> list[EffectCall]:
        """What was handed in and whose outcome hasn't been fetched yet."""
        with self._lock:
            return list(self._in_hand.values())

    def shut(self, call: EffectCall) -> None:
        """Ends what an effect waits for: its run was cancelled."""
        with self._lock:
            found = [flight for flight in self._flights.values() if flight.call is call]
        for flight in found:
            self._shut(flight)

    def _shut(self, flight: Flight) -> None:
        """Shuts a flight's socket, while the thread is still on it: its next effect must not be cut off."""
        with self._lock:
            if self._flights.get(flight.thread_id) is flight:
                self.sockets.shut(flight.thread_id)

    def submit(self, call: EffectCall) -> None:
        """Hands an effect to the next free thread."""
        with self._lock:
            self._waiting += 1
            self._in_hand[call.claimed.timer_id] = call
        self._jobs.put(call)

    def finished(self) -> list[Finished]:
        """What has come back since the last time; also ends what is past its deadline."""
        self.watch()
        found = []
        with self._lock:
            while self._done:
                found.append(self._done.popleft())
                self._in_hand.pop(found[-1].call.claimed.timer_id, None)
        return found

    def close(self) -> None:
        """Lets the threads end once they are idle."""
        for _ in range(self.threads):
            self._jobs.put(None)

    def watch(self) -> None:
        """Shuts the socket of an effect at its deadline, and gives up on a thread that doesn't return even then."""
        now = time.monotonic()
        with self._lock:
            late = [flight for flight in self._flights.values() if now >= flight.ends_at]
        for flight in late:
            if not flight.shut:
                flight.shut = True
                self._shut(flight)
            elif now >= flight.ends_at + HUNG_GRACE and not flight.given_up:
                self._give_up(flight)

    def _give_up(self, flight: Flight) -> None:
        with self._lock:
            if self._flights.get(flight.thread_id) is not flight:
                return  # it came back a moment ago, and the thread may be on its next one
            flight.given_up = True
            self.hung += 1
            # Such as a name server that doesn't answer: what was shut before it sent anything sends nothing later.
            unsent = flight.shut and not self.sockets.has_sent(flight.thread_id)
            outcome = Outcome.retry(UNSENT) if unsent else Outcome.timeout(HUNG)
            self._done.append(Finished(flight.call, outcome))
        log.error("alarm", what="hung thread", step_id=flight.call.step_id)
        self.bell.set()

    def _work(self) -> None:
        me = threading.get_ident()
        while (call := self._jobs.get()) is not None:
            flight = Flight(call, me, time.monotonic() + call.timeout)
            with self._lock:
                self._waiting -= 1
                self._flights[me] = flight
            outcome = self._perform(call)
            with self._lock:
                del self._flights[me]
                if flight.given_up:
                    self.hung -= 1
                else:
                    self._done.append(Finished(call, outcome))
            self.bell.set()

    def _perform(self, call: EffectCall) -> Outcome:
        if not self.may_start(call):
            return Outcome.retry(FENCED)
        failpoints.hit("effect.before_send")
        call.door.outbound = Outbound(
            call.door.call,
            allow_loopback=self.allow_loopback,
            key=call.door.key,
            timeout=call.timeout,
            sockets=self.sockets,
        )
        outcome = guarded(call)
        failpoints.hit("effect.replied")
        return outcome
