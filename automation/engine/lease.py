"""A pump's lease: beats from a thread with a connection of its own, and fences the process before it can run out."""

import os
import threading
import time
import uuid
from dataclasses import dataclass, field

import structlog
from django.db import connection

from automation.conf import Conf
from automation.engine.effects import EffectCall
from automation.store import claims

log = structlog.get_logger(__name__)
HALF_OPEN_EXIT = 75


@dataclass(slots=True)
class Lease:
    """Renews the worker's row. `lost` turns true when the database says that this worker was declared dead."""

    worker: uuid.UUID
    conf: Conf
    lost: bool = False
    _sent_at: float = field(default_factory=time.monotonic)
    _asking_since: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Starts the beat and the watch over it; called after the fork."""
        threading.Thread(target=self._beats, name="beat", daemon=True).start()
        threading.Thread(target=self._watch, name="beat-watch", daemon=True).start()

    def stop(self) -> None:
        """Ends both threads."""
        self._stop.set()

    def age(self) -> float:
        """Seconds since the last beat that succeeded was sent, by the monotonic clock."""
        return time.monotonic() - self._sent_at

    def may_start(self, call: EffectCall) -> bool:
        """Whether an effect would end before the lease can: the fence of the process's own."""
        margin = max(self.conf.fence_margin, call.timeout + self.conf.lease / 12)
        return not self.lost and self.age() <= self.conf.lease - margin

    def _beats(self) -> None:
        while not self._stop.wait(self.conf.beat):
            sent = time.monotonic()
            self._asking_since = sent
            try:
                alive = self._ask()
            except Exception as error:
                # Whatever it was, the next beat asks again: a pump without a beat would sit there and claim nothing.
                log.warning("beat failed", error=str(error)[:200])
                connection.close()
                continue
            finally:
                self._asking_since = None
            if not alive:
                self.lost = True
                log.warning("declared dead", worker=str(self.worker))
                break
            self._sent_at = sent
        connection.close()

    def _ask(self) -> bool:
        return claims.beat(self.worker, lease=self.conf.lease)

    def _watch(self) -> None:
        """A half-open connection shows no other sign than a beat that doesn't return: then the process leaves."""
        limit = self.conf.lease / 4
        while not self._stop.wait(min(limit / 4, 1.0)):
            asking = self._asking_since
            if asking is not None and time.monotonic() - asking > limit:
                log.error("alarm", what="beat does not return", worker=str(self.worker))
                os._exit(HALF_OPEN_EXIT)
