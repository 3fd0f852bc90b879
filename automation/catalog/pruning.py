"""What of the host's own goes with time: retention's round of a tenant asks for it, too."""

from typing import Protocol


class Drop(Protocol):
    """Deletes what is due of one tenant, a portion in a transaction of its own that waits for nobody."""

    def __call__(self, tenant_id: int, *, limit: int) -> int:
        """How many of up to `limit` rows went; 0 when nothing is left to go."""


pruned: dict[str, Drop] = {}
"""By what it is called in the figures of a round: "imported rows"."""


def prune(what: str, drop: Drop) -> None:
    """Have a tenant's rounds of retention drop rows of the host's own that are kept long enough."""
    pruned[what] = drop
