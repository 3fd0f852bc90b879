"""Makes sure after a commit that events get matched: arms the tenant's matcher, and rings where no pump is alive."""

from automation import queue
from automation.store.timers import arm_match


def arm(tenant_id: int) -> None:
    """One statement where a pump is alive; a pool without any gets a bell."""
    arm_match(tenant_id)
    queue.ring_where_silent(tenant_id)
