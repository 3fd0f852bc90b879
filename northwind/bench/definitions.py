"""The rules that benches run."""

from typing import Any

TICKET = "helpdesk.ticket"
LISTENS = ["priority"]


def rule(steps: list[dict[str, Any]], *, fields: list[str] | None = None, condition: Any = None) -> dict[str, Any]:
    """A rule on updated tickets, by default on their priority; steps are (action, params) in their short form."""
    return {
        "schema_version": 1,
        "trigger": {
            "kind": "record_changed",
            "params": {"model": TICKET, "on": ["updated"], "fields": LISTENS if fields is None else fields},
        },
        "condition": condition,
        "steps": steps,
    }


def step(identity: str, action: str, **params: Any) -> dict[str, Any]:
    """An action step."""
    return {"id": identity, "kind": "action", "action": action, "version": 1, "params": params}


def outside(count: int, milliseconds: int = 0) -> dict[str, Any]:
    """So many outside steps that do nothing."""
    more = {"milliseconds": milliseconds} if milliseconds else {}
    return rule([step(f"outside_{number}", "bench_noop", **more) for number in range(1, count + 1)])


def local() -> dict[str, Any]:
    """Three local steps on one record: set, tag, note."""
    return rule(
        [
            step("set", "set_fields", fields=[{"field": "status", "value": "open"}]),
            step("tag", "add_tags", tags=["seen"]),
            step("note", "add_note", text="The priority of {{ ticket.subject }} is {{ ticket.priority }} now."),
        ]
    )


def small() -> dict[str, Any]:
    """What a small tenant does: one local step."""
    return rule([step("note", "add_note", text="The priority is {{ ticket.priority }} now.")])


def judged_only() -> dict[str, Any]:
    """A rule whose trigger fits and whose condition never holds."""
    never = {"id": "never", "field": "subject", "op": "contains", "value": "no ticket says this"}
    urgent = {"id": "not_low", "field": "priority", "op": "is_not", "value": "low"}
    return rule([step("note", "add_note", text="Never.")], condition={"id": "both", "all": [urgent, never]})


def elsewhere(number: int) -> dict[str, Any]:
    """A rule that can't match a changed priority: it listens to another field."""
    condition = {"id": "c", "all": [{"id": "says", "field": "subject", "op": "contains", "value": f"number {number}"}]}
    return rule([step("note", "add_note", text="Never.")], fields=["subject"], condition=condition)
