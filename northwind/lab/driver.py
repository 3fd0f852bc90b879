"""Plays the people of the small tenants: each really changes one ticket every few seconds."""

import heapq
import random
import signal
import threading
import time
from collections.abc import Sequence

from django.db import connection

from northwind.helpdesk.models import Ticket
from tenants.context import Actor, acting_for

PRIORITIES = ("low", "normal", "high")
THREADS = 4
LOOK = 0.2  # seconds between two looks at whether it is time to stop


def drive(tenants: Sequence[int], every: float) -> None:
    """Change tickets until SIGTERM or SIGINT, each tenant's about once in `every` seconds, and end in order."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    threads = [
        threading.Thread(target=_play, args=(tenants[start::THREADS], every, stop, random.Random(start)))  # noqa: S311 repeatable
        for start in range(min(THREADS, len(tenants)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _play(tenants: Sequence[int], every: float, stop: threading.Event, rng: random.Random) -> None:
    begin = time.monotonic()
    due = [(begin + rng.uniform(0, every), tenant_id) for tenant_id in tenants]
    heapq.heapify(due)
    while not stop.is_set():
        at, tenant_id = due[0]
        wait = at - time.monotonic()
        if wait > 0:
            stop.wait(min(wait, LOOK))
            continue
        _change(tenant_id)
        heapq.heapreplace(due, (at + every * rng.uniform(0.8, 1.2), tenant_id))
    connection.close()


def _change(tenant_id: int) -> None:
    with acting_for(tenant_id, Actor("person", None, "An agent")):
        ticket = Ticket.objects.earliest("id")
        ticket.priority = PRIORITIES[(PRIORITIES.index(ticket.priority) + 1) % len(PRIORITIES)]
        ticket.save(update_fields=["priority"])
