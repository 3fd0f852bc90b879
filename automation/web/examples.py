"""A first draft for a new rule, made of what this installation knows."""

from typing import Any

from automation.catalog import registry
from automation.catalog.automatable import Automatable

NOTE = "add_note"
EMPTY: dict[str, Any] = {"schema_version": 1, "trigger": None, "condition": None, "steps": []}


def example() -> dict[str, Any]:
    """A whole small rule that a person can change: a note on a record whose first watched choice changes."""
    entry = next((entry for entry in registry.models.values() if entry.note and entry.watched), None)
    if entry is None or f"{NOTE}@1" not in registry.actions:
        return dict(EMPTY)
    field = next((path for path, found in entry.watched.items() if found.choices), next(iter(entry.watched)))
    return {
        "schema_version": 1,
        "trigger": {"kind": "record_changed", "params": {"model": entry.name, "on": ["updated"], "fields": [field]}},
        "condition": _condition(entry, field),
        "steps": [{"kind": "action", "action": NOTE, "version": 1, "params": {"text": f"{field} has changed"}}],
    }


def _condition(entry: Automatable, field: str) -> dict[str, Any]:
    choices = entry.fields[field].choices
    if not choices:
        return {"all": [{"field": field, "op": "changed"}]}
    return {"all": [{"field": field, "op": "changed_to", "value": choices[-1][0]}]}
