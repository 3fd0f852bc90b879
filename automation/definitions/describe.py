"""The catalog as plain values: what the builder, the API and the docs are made from."""

import sys
from typing import Any

from automation.catalog.action import Action
from automation.catalog.automatable import Automatable, Field
from automation.catalog.params import marked_schema
from automation.catalog.trigger import Trigger
from automation.core.operators import OPERATORS
from automation.core.spec import Retry
from automation.definitions.names import record_names
from automation.definitions.schema import Definition
from automation.definitions.scope import Catalog


def describe(catalog: Catalog) -> dict[str, Any]:
    """Everything a rule can be made of, as JSON: triggers, actions, models with their fields, operators, the schema."""
    return {
        "triggers": [describe_trigger(item) for _kind, item in sorted(catalog.triggers.items())],
        "actions": [describe_action(item) for _name, item in sorted(catalog.actions.items())],
        "models": [describe_model(item) for _name, item in sorted(catalog.models.items())],
        "operators": describe_operators(),
        "definition": Definition.model_json_schema(by_alias=True),
    }


def describe_trigger(trigger: Trigger) -> dict[str, Any]:
    """A trigger: kind, label, and the JSON schema of its parameters."""
    return {"kind": trigger.kind, "label": str(trigger.label), "params": marked_schema(trigger.Params)}


def describe_action(action: Action) -> dict[str, Any]:
    """An action: kind, version, label, parameters, effects (the first is the default), retry, timeout in seconds."""
    return {
        "kind": action.kind,
        "version": action.version,
        "label": str(action.label),
        "summary": (sys.modules[type(action).__module__].__doc__ or "").strip().partition("\n")[0],
        "params": marked_schema(action.Params),
        "effects": [str(effect) for effect in action.effects],
        "models": None if action.models is None else sorted(action.models),
        "needs_record": action.works_on_record(),
        "retry": _retry(action.default_retry),
        "timeout": action.default_timeout,
    }


def describe_model(automatable: Automatable) -> dict[str, Any]:
    """A model: its name, label, fields, and what templates call them."""
    names = {path: name for name, path in record_names(automatable).items()}
    fields = [_field(item) | {"template_name": names[path]} for path, item in automatable.fields.items()]
    return {
        "name": automatable.name,
        "label": automatable.label,
        "fields": fields,
        "notes": automatable.note is not None,
        "name_field": automatable.name_field,
    }


def describe_operators() -> list[dict[str, Any]]:
    """The operators: the types they accept, what they compare with, whether with another field."""
    return [
        {
            "name": operator.name,
            "types": sorted(operator.types),
            "wants": operator.wants,
            "reads": operator.reads,
            "other_field": operator.other_field,
        }
        for operator in OPERATORS.values()
    ]


def operators_for(field: Field) -> list[str]:
    """The operators that a condition on the field can be made with; changes only where changes are events."""
    return [
        operator.name
        for operator in OPERATORS.values()
        if field.type in operator.types and (field.watch or operator.reads == "value")
    ]


def _field(field: Field) -> dict[str, Any]:
    return {
        "path": field.path,
        "type": field.type,
        "label": field.label,
        "choices": [{"value": value, "label": str(label)} for value, label in field.choices],
        "watch": field.watch,
        "change": field.change,
        "target": field.target or None,
        "nullable": field.nullable,
        "operators": operators_for(field),
    }


def _retry(retry: Retry) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "base_delay": retry.base_delay,
        "factor": retry.factor,
        "max_delay": retry.max_delay,
        "jitter": retry.jitter,
    }
