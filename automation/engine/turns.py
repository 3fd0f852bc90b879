"""Lets steps that wait for a place with a connection have their turn, as many as there are places."""

from collections.abc import Iterable

import structlog
from django.db import OperationalError

from automation.engine.effects import Finished
from automation.store import places

log = structlog.get_logger(__name__)


def given_back(finished: Iterable[Finished]) -> set[int]:
    """The connections with whom these calls had places that others may wait for."""
    return {used.id for one in finished for used in one.call.door.connections.values() if used.has_places}


def give_places(connection_ids: Iterable[int]) -> int:
    """Has the next steps that wait for these connections fall due, a transaction each; answers how many.

    To be called outside a transaction, after the one that gave a place back or made one more. A connection that
    somebody has locked for long is left to the sweep.
    """
    given = 0
    for connection_id in sorted(connection_ids):
        try:
            given += places.give([connection_id])
        except OperationalError as error:
            log.warning("database", error=str(error)[:200])
    return given


def give_all_places() -> int:
    """The same for every connection that steps wait for: what a crash, a verb or another release has given back."""
    return give_places(places.waited_for())
