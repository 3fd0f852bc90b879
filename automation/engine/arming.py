"""Makes sure after a commit that events get matched: arms the tenant's matcher, and rings where no pump is alive."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from automation import queue
from automation.store.timers import arm_match

_left: ContextVar[bool] = ContextVar("automation_arming_left", default=False)


def arm(tenant_id: int) -> None:
    """One statement where a pump is alive; a pool without any gets a bell."""
    arm_match(tenant_id)
    queue.ring_where_silent(tenant_id)


def arm_after_commit(tenant_id: int) -> None:
    """As `arm`, unless the engine's own transaction has said that it sees to that itself."""
    if not _left.get():
        arm(tenant_id)


@contextmanager
def left_to_caller() -> Iterator[None]:
    """For transactions of the engine, which arm once, or whose matcher comes back anyway."""
    token = _left.set(True)
    try:
        yield
    finally:
        _left.reset(token)
