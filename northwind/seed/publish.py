"""Publishes a rule for the tenant acted for, and switches it on."""

from collections.abc import Mapping
from typing import Any

from automation.engine import rules


def publish(name: str, definition: Mapping[str, Any]) -> int:
    """Make the rule live; answer its id. Raises `DefinitionError` with everything that is wrong with the definition."""
    rule = rules.create(name, definition=dict(definition))
    rules.publish(rule.pk, revision=0)
    rules.switch_on(rule.pk)
    return rule.pk
