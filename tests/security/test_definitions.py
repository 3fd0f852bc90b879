"""Hostile definitions are answered at once and with an error that says what is wrong."""

import time
from typing import Any

import pytest

from automation.catalog import registry
from automation.core.errors import DefinitionError
from automation.definitions.compile import compile_definition
from automation.engine import sayings
from automation.engine.documents import storable
from automation.engine.references import References

SECONDS = 2.0
MANY: dict[str, list[Any]] = {
    "steps without ids": [{"kind": "stop"}] * 4000,
    "steps with ids in the way": [{"kind": "stop", "id": f"stop_{n}"} for n in range(1500)] + [{"kind": "stop"}] * 900,
    "arms without ids": [{"kind": "branch", "arms": [{"if": {}, "steps": []}] * 2500}],
    "templates of braces": [
        {"kind": "action", "action": "add_note", "version": 1, "params": {"text": "{" * 19_000}} for _ in range(3)
    ],
    "one template with many tags": [
        {"kind": "action", "action": "add_note", "version": 1, "params": {"text": "{% if a %}{% endif %}" * 900}}
    ]
    * 3,
}


@pytest.mark.django_db
@pytest.mark.parametrize("what", MANY)
def test_a_definition_that_is_full_to_the_brim_is_judged_in_no_time(what: str) -> None:
    trigger = {"kind": "record_changed", "params": {"model": "helpdesk.ticket", "on": ["updated"]}}
    definition = {"schema_version": 1, "trigger": trigger, "condition": None, "steps": MANY[what]}
    started = time.perf_counter()
    kept = storable(definition)
    with pytest.raises(DefinitionError):
        compile_definition(kept, registry, References(1))
    sayings.sentence(kept, sayings.Names())
    assert time.perf_counter() - started < SECONDS
