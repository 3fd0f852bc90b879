"""The only door to django-q2: rings the bell, checks names of clusters, builds a cluster, and holds its stop flag."""

import multiprocessing
import os
import pydoc
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from multiprocessing.synchronize import Event as SharedFlag
from typing import Any

import psutil
import structlog
from django.conf import settings
from django.db import connection
from django_q.cluster import Cluster
from django_q.conf import Conf as QueueConf
from django_q.models import Failure
from django_q.tasks import async_task

log = structlog.get_logger(__name__)
PUMP = "automation.workers.pump"
KNOWN_AT_MOST = 10_000  # tenants whose pool is remembered
KNOWN_FOR = 2.0  # seconds for which a pool that had a live pump is believed to have one

_stop: SharedFlag = multiprocessing.get_context("fork").Event()
_alive_at: dict[str, float] = {}


class UnknownPool(LookupError):
    """A pool that no cluster of the settings serves: its work would sit for ever."""


def pools() -> list[str]:
    """The names of all clusters that the settings know."""
    return [settings.Q_CLUSTER["name"], *settings.Q_CLUSTER.get("ALT_CLUSTERS", {})]


def pool() -> str:
    """The pool that this process serves."""
    return str(QueueConf.CLUSTER_NAME)


def workers() -> int:
    """How many pumps this process's cluster wants."""
    return int(QueueConf.WORKERS)


def timeouts() -> tuple[float, float]:
    """(timeout, retry) of the queue in seconds, for the check that the settings fit together."""
    return float(QueueConf.TIMEOUT or 0), float(QueueConf.RETRY or 0)


def ring(name: str) -> None:
    """Enqueues one bell for a pool: whichever of its workers takes it starts a pump, or returns at once."""
    if name not in pools():
        raise UnknownPool(f"no cluster is called {name!r}; there are: {', '.join(pools())}")
    async_task(PUMP, cluster=name, save=False)


def ring_where_silent(tenant_id: int) -> None:
    """Rings the pool of a tenant if it has no live pump; asks the database at most every two seconds a pool."""
    name = _pool_of(tenant_id)
    if name is None or time.monotonic() - _alive_at.get(name, -1e9) < KNOWN_FOR:
        return
    if live(name):
        _alive_at[name] = time.monotonic()
    elif name in pools():
        ring(name)
        _alive_at[name] = time.monotonic()


def live(name: str) -> list[int]:
    """The process ids of the pool's live pumps: unexpired, and, where they are on this host, existing."""
    host = socket.gethostname()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT host, pid FROM automation_worker WHERE pool = %s AND expires_at > automation_now()", [name]
        )
        rows: Sequence[tuple[str, int]] = cursor.fetchall()
    return [pid for where, pid in rows if where != host or exists(pid)]


def exists(pid: int) -> bool:
    """Whether a process of that id is there, and isn't only waiting to be buried."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def of_group(pids: Sequence[int], group: int) -> list[int]:
    """Those of the processes that belong to a process group: the pumps of one cluster."""
    found = []
    for pid in pids:
        try:
            if os.getpgid(pid) == group:
                found.append(pid)
        except ProcessLookupError:
            continue
    return found


def build_cluster() -> Any:
    """A cluster that isn't started; the caller replaces the signal handlers that its constructor sets.

    The pump's code is loaded before the fork, so that workers start at once, also after a death, and share its memory.
    """
    if pydoc.locate(PUMP) is None:
        raise UnknownPool(f"there is no {PUMP}")
    return Cluster()


def forget_failures(*, before: datetime, limit: int) -> int:
    """Deletes what the task queue noted about tasks of its own that failed before that moment; answers how many."""
    old = list(Failure.objects.filter(stopped__lt=before).order_by("stopped").values_list("pk", flat=True)[:limit])
    return Failure.objects.filter(pk__in=old).delete()[0] if old else 0


def stopping() -> bool:
    """Whether the cluster of this process was asked to stop."""
    return _stop.is_set()


def ask_to_stop() -> None:
    """Tells all pumps of this cluster to claim nothing more."""
    _stop.set()


_pools_of: dict[int, tuple[str, float]] = {}


def _pool_of(tenant_id: int) -> str | None:
    """The tenant's pool, remembered for a moment: after every commit it would be one statement more."""
    found = _pools_of.get(tenant_id)
    if found is not None and time.monotonic() - found[1] < KNOWN_FOR:
        return found[0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pool FROM automation_lane WHERE id = automation_lane_of(%s)", [tenant_id])
        row = cursor.fetchone()
    if row is None:
        return None
    if len(_pools_of) >= KNOWN_AT_MOST:
        _pools_of.clear()
    _pools_of[tenant_id] = (row[0], time.monotonic())
    return str(row[0])
