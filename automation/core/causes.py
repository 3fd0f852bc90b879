"""Where an event comes from, and whether a rule may go on in its chain."""

from dataclasses import dataclass
from typing import Literal

Step = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Cause:
    """Who made an event happen: its root and parent event, the rule, run and step, depth, and the path behind it.

    `path` lists (rule id, record key) pairs from the root on; a record key is "helpdesk.ticket:12".
    """

    root_event_id: int | None
    parent_event_id: int | None
    rule_id: int | None
    run_id: int | None
    step_id: int | None
    depth: int
    path: tuple[Step, ...]


ROOT = Cause(None, None, None, None, None, 0, ())


def child(
    cause: Cause, *, event_id: int, rule_id: int, run_id: int | None, step_id: int | None, record_key: str
) -> Cause:
    """The cause of what a run writes: `cause` and `event_id` are those of the event that the run was started by."""
    return Cause(
        root_event_id=event_id if cause.root_event_id is None else cause.root_event_id,
        parent_event_id=event_id,
        rule_id=rule_id,
        run_id=run_id,
        step_id=step_id,
        depth=cause.depth + 1,
        path=(*cause.path, (rule_id, record_key)),
    )


def may_continue(
    cause: Cause, rule_id: int, record_key: str, *, max_depth: int
) -> Literal["loop_same_rule", "loop_depth"] | None:
    """The reason why the rule must not run for an event with this cause, or None when it may.

    The same rule on the same record in one chain is a loop; a chain that has reached `max_depth` goes no deeper,
    whatever the records. A person's change is a root of its own and is never held up here.
    """
    if (rule_id, record_key) in cause.path:
        return "loop_same_rule"
    if cause.depth >= max_depth:
        return "loop_depth"
    return None
