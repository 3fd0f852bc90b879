"""Fills the templates in a step's parameters; of what was erased with a person nothing is sent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.catalog.action import Action
from automation.catalog.params import filled
from automation.core.erasing import BEFORE, ERASED, EVERYTHING
from automation.core.errors import TemplateError
from automation.core.spec import Node
from automation.core.templating import render
from automation.engine.progress import RunInHand


def fill(run: RunInHand, node: Node, action: Action) -> Any:
    """The step's parameters with every template rendered. Raises TemplateError or pydantic's ValidationError.

    Where values of the event were erased, one that is empty in the record, too, is a TemplateError that says so.
    """
    erased = run.event.facts.get("erased")
    if not erased:
        return _filled(run, node, action)
    known = run.fresh or {}
    gone = registry.model(run.event.model).personal if EVERYTHING in erased else erased
    params = _filled(
        replace(run, fresh={**{path: ERASED for path in gone if path not in known}, **known}), node, action
    )
    text = params.model_dump_json().casefold()
    if ERASED in text or quote(ERASED).casefold() in text:
        raise TemplateError(_("what the step would send is gone: the values were erased with a person"))
    return params


def event_left(run: RunInHand) -> dict[str, Any]:
    """The facts that an outside action may send: without what was erased, and with the record as it is now."""
    facts = run.event.facts
    erased = facts.get("erased")
    if not erased:
        return facts
    kept = {part: _left(facts.get(part), erased, prefix) for part, prefix in (("before", BEFORE), ("after", ""))}
    data = {name: value for name, value in (facts.get("data") or {}).items() if f"event.{name}" not in erased}
    return {**facts, **kept, "data": data, "snapshot": run.fresh or {}}


def _left(values: Any, erased: Sequence[str], prefix: str) -> dict[str, Any]:
    if EVERYTHING in erased:
        return {}
    return {path: one for path, one in (values or {}).items() if path not in erased and prefix + path not in erased}


def _filled(run: RunInHand, node: Node, action: Action) -> Any:
    params = run.rule.params(node, action)
    named: dict[str, Any] = {}

    def rendered(source: str, target: str) -> str:
        if not named:
            named.update(run.names())
        return render(source, named, target=target, zone=run.tenant.zone)

    return filled(params, rendered)
