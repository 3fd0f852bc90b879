"""Runs the workers of one pool: a django-q2 cluster that stops cleanly, and leaves when it dies or is wedged."""

import os
import signal
import time
from typing import Any

import psutil
import structlog
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, OperationalError, connection, connections

from automation import conf, queue

ABOUT = __doc__

log = structlog.get_logger(__name__)
WATCH = 0.2
STOP_GRACE = 60.0
WEDGED_AFTER = 180.0
WEDGED_EXIT = 70


class Command(BaseCommand):
    """Starts the cluster in a process group of its own, watches it, and rings for pumps that are missing."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """No arguments: the pool comes from Q_CLUSTER_NAME, since django-q2 reads its settings at import."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs until a signal asks to stop; exits with 70 at once when the cluster dies or is wedged."""
        settings = conf.load()
        timeout, retry = queue.timeouts()
        wrong = conf.problems(settings, queue_timeout=timeout, queue_retry=retry)
        if wrong:
            raise CommandError("These settings don't fit together: " + "; ".join(wrong))
        if queue.pool() not in queue.pools():
            raise CommandError(f"No cluster is called {queue.pool()!r}; there are: {', '.join(queue.pools())}")
        if os.getpid() != os.getpgrp():
            os.setpgrp()
        asked: list[int] = []
        cluster = queue.build_cluster()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, frame: asked.append(received))
        _reach_database()
        connections.close_all()
        cluster.start()
        self.stdout.write(f"workers of pool {queue.pool()} started")
        self._watch(cluster, asked, settings.bell)
        self._stop(cluster)

    def _watch(self, cluster: Any, asked: list[int], bell: float) -> None:
        rung_at, complete_at = -1e9, time.monotonic()
        while not asked:
            if not cluster.sentinel.is_alive():
                _leave("the sentinel died")
            now = time.monotonic()
            if now - rung_at >= bell:
                rung_at = now
                if self._ring_for_missing():
                    complete_at = now
                elif now - complete_at > max(WEDGED_AFTER, 3 * bell):
                    _leave("pumps stay missing")
            time.sleep(WATCH)

    def _ring_for_missing(self) -> bool:
        """Rings once for each pump that isn't there; true when none was missing, or nobody can say."""
        try:
            missing = queue.workers() - len(queue.of_group(queue.live(queue.pool()), os.getpgrp()))
            for _ in range(missing):
                queue.ring(queue.pool())
        except Error as error:
            # Pumps wait for the database, too: that they can't be seen is no sign that they are wedged.
            log.warning("database", error=str(error)[:200])
            connection.close()
            return True
        return missing <= 0

    def _stop(self, cluster: Any) -> None:
        """Pumps claim nothing more, let their threads finish and return; after the grace the group is killed."""
        queue.ask_to_stop()
        signal.signal(signal.SIGALRM, lambda number, frame: _leave("the workers did not stop in time"))
        signal.alarm(int(STOP_GRACE))
        cluster.stop()
        signal.alarm(0)
        self.stdout.write("workers stopped")


def _reach_database() -> None:
    """Pumps wait for a database that goes away, but without one there is nothing to start with."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise CommandError(f"The database can't be reached: {' '.join(str(error).split())}") from error


def _leave(why: str) -> None:
    """Takes the whole group down: whoever supervises this command starts a fresh one.

    The others one by one: killing the group as a whole would take our exit code with it.
    """
    log.error("alarm", what=why)
    own = os.getpid()
    for process in psutil.process_iter():
        try:
            if process.pid != own and os.getpgid(process.pid) == own:
                process.kill()
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    os._exit(WEDGED_EXIT)
