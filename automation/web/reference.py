"""What a definition may say, for the help beside the editor: triggers, fields, operators, steps and actions."""

from dataclasses import dataclass
from typing import Any

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.operators import OPERATORS

UNIONS = ("anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an action or trigger: its name, what it holds, and whether it must be there."""

    name: str
    holds: str
    required: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """An action or a trigger as it is written in a definition."""

    kind: str
    version: int
    label: str
    parameters: list[Parameter]


@dataclass(frozen=True, slots=True)
class Reference:
    """All that this installation knows."""

    triggers: list[Entry]
    actions: list[Entry]
    models: list[Automatable]
    operators: dict[str, list[str]]


def catalog() -> Reference:
    """The reference of everything that is registered, in the order of the names."""
    return Reference(
        triggers=[_entry(kind, 1, found) for kind, found in sorted(registry.triggers.items())],
        actions=[_entry(found.kind, found.version, found) for _name, found in sorted(registry.actions.items())],
        models=[found for _name, found in sorted(registry.models.items())],
        operators=_by_type(),
    )


def _entry(kind: str, version: int, found: Any) -> Entry:
    schema = found.Params.model_json_schema()
    required = set(schema.get("required", ()))
    parameters = [
        Parameter(name, _holds(part, schema.get("$defs", {})), name in required)
        for name, part in schema.get("properties", {}).items()
    ]
    return Entry(kind, version, str(found.label), parameters)


def _holds(part: dict[str, Any], parts: dict[str, Any]) -> str:
    """What a parameter holds, in the words of JSON: its type, or the values that are allowed."""
    if "$ref" in part:
        part = parts.get(part["$ref"].rpartition("/")[2], {})
    if "enum" in part:
        return " | ".join(str(value) for value in part["enum"])
    if "const" in part:
        return str(part["const"])
    for union in UNIONS:
        if union in part:
            return " | ".join(dict.fromkeys(_holds(one, parts) for one in part[union]))
    if part.get("type") == "array":
        return f"[{_holds(part.get('items', {}), parts)}]"
    return str(part.get("type", "any"))


def _by_type() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, operator in OPERATORS.items():
        for kind in sorted(operator.types):
            found.setdefault(kind, []).append(name)
    return dict(sorted(found.items()))
