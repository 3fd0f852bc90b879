"""Keeps one part of a chore from spoiling the others: each is done by itself, and what fails in it is an alarm."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.db import InterfaceError, OperationalError

from automation.engine.giving_way import met_a_lock

log = structlog.get_logger(__name__)


@contextmanager
def by_itself(what: str, **about: object) -> Iterator[None]:
    """One part: a lock in its way leaves it for the next round, a fault is told, a database that is away is raised."""
    try:
        yield
    except InterfaceError:
        raise
    except OperationalError as error:
        if not met_a_lock(error):
            raise
        log.info("met a lock", what=what, **about)
    except Exception as error:
        log.exception("alarm", what=what, error=type(error).__name__, **about)
