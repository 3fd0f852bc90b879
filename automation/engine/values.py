"""The names that templates may use: the record by its short name, event, rule, tenant, and the outputs of steps."""

from collections.abc import Mapping
from typing import Any


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """{"customer.plan": "gold"} as {"customer": {"plan": "gold"}}; a reference's own id moves to its "id"."""
    tree: dict[str, Any] = {}
    for path in sorted(flat):
        *way, last = path.split(".")
        place = tree
        for part in way:
            below = place.get(part)
            if not isinstance(below, dict):
                below = place[part] = {} if below is None else {"id": below}
            place = below
        place[last] = flat[path]
    return tree


def names(
    *,
    model: str,
    snapshot: Mapping[str, Any],
    record: int | None,
    data: Mapping[str, Any],
    rule: str,
    tenant: str,
    steps: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that a template of a step may read, as plain dicts."""
    values: dict[str, Any] = {
        "event": dict(data),
        "rule": {"name": rule},
        "tenant": {"name": tenant},
        "steps": dict(steps),
    }
    if model:
        values[model.rpartition(".")[2]] = {"id": record, **nested(snapshot)}
    return values
