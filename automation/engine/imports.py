"""Which rules an import would start, for whoever is asked whether they are to run."""

from dataclasses import dataclass

from automation.engine.rules import live_rules
from tenants.context import current_tenant


@dataclass(frozen=True, slots=True)
class ImportRule:
    """A live rule that listens to new or changed records of a model; `imports` is run, skip or once."""

    rule_id: int
    name: str
    imports: str


def rules_on_import(model: str) -> list[ImportRule]:
    """The current tenant's live rules that listen to records such as "helpdesk.ticket" made or changed, in order."""
    found = []
    for rule in live_rules(current_tenant()):
        definition = rule.published.definition if rule.published else {}
        trigger = definition.get("trigger") or {}
        params = trigger.get("params") or {}
        if trigger.get("kind") != "record_changed" or params.get("model") != model:
            continue
        if {"created", "updated"} & set(params.get("on") or ("updated",)):
            found.append(ImportRule(rule.pk, rule.name, definition.get("imports", "run")))
    return found
