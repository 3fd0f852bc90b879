"""Keeps what a branch was judged on, where the event alone doesn't say it, so that it can be judged again."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from automation.core.conditions import leaves
from automation.core.histories import moment_in, values_in
from automation.core.moments import Moment
from automation.core.spec import Node
from automation.engine.progress import RunInHand


def judged_on(run: RunInHand, node: Node) -> dict[str, Any]:
    """The moment, and after a wait the present values that the arms read: {"now": …, "read": {path: raw}}."""
    found: dict[str, Any] = {"now": run.now.isoformat()}
    if run.fresh is not None:
        found["read"] = {path: run.fresh[path] for path in _paths(node) if path in run.fresh}
    return found


def as_judged(
    facts: Mapping[str, Any], kept: Any, *, slept: bool, otherwise: datetime, zone: ZoneInfo
) -> tuple[dict[str, Any], Moment] | None:
    """The facts and the moment that a branch was judged on, by what `judged_on` kept; of older rows the event's.

    None where that isn't known: after a wait, in an older row or in one that was erased.
    """
    now = moment_in(kept, "now")
    read = values_in(kept) if now is not None else None
    if slept and read is None:
        return None
    snapshot = {**(facts.get("snapshot") or {}), **(read or {})}
    return {**facts, "snapshot": snapshot}, Moment(now=now or otherwise, zone=zone)


def _paths(node: Node) -> Iterator[str]:
    for arm in node.arms:
        for leaf in leaves(arm.condition):
            yield leaf.field
            if leaf.value_of is not None:
                yield leaf.value_of
