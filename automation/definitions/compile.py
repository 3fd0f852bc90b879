"""A definition turned into a RuleSpec, or everything that is wrong with it."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from automation.catalog.params import TriggerParams, load
from automation.core.calendars import Span
from automation.core.errors import DefinitionError
from automation.core.spec import Again, RuleSpec, RunLimit, TriggerSpec
from automation.definitions.conditions import compile_part
from automation.definitions.pointers import problems_of
from automation.definitions.schema import Definition, DelayStep, TriggerPart, parse
from automation.definitions.scope import Catalog, References, Scope
from automation.definitions.steps import compile_steps

__all__ = ["Catalog", "References", "compile_definition", "parse_trigger"]


def compile_definition(
    data: Mapping[str, Any] | Definition, catalog: Catalog, references: References, *, published: bool = False
) -> RuleSpec:
    """The rule as frozen values. `catalog` is the module `catalog.registry`, `references` the tenant's own names.

    With `published` an action that this process doesn't know is one of a newer release, and no problem.

    Raises DefinitionError that lists every problem at its JSON pointer.
    """
    definition = data if isinstance(data, Definition) else parse(data)
    scope = Scope(catalog, references, published=published)
    trigger = parse_trigger(definition.trigger, scope)
    part = definition.condition
    condition = None if part is None else compile_part(part, "/condition", scope)
    nodes = compile_steps(definition.steps, scope)
    if not definition.steps:
        scope.wrong("/steps", _("A rule needs at least one step."), "no_steps")
    if scope.problems or trigger is None:
        raise DefinitionError(scope.problems)
    return RuleSpec(
        trigger=trigger,
        condition=condition,
        again=_again(definition),
        nodes=nodes,
        first=0 if nodes else None,
        reads=frozenset(scope.reads),
        imports=definition.imports,
        limit=_limit(definition),
        expires=None if definition.expires is None else Span.parse(definition.expires),
    )


def parse_trigger(part: TriggerPart, scope: Scope) -> TriggerSpec | None:
    """What the rule listens to, noted in the scope with its model; None, with problems noted, when it is none."""
    trigger = scope.catalog.triggers.get(part.kind)
    if trigger is None:
        scope.wrong("/trigger/kind", _("There is no trigger “%(kind)s”.") % {"kind": part.kind[:40]}, "unknown_trigger")
        return None
    try:
        params: TriggerParams = load(trigger.Params, part.params)
    except ValidationError as error:
        scope.problems.extend(problems_of(error, "/trigger/params"))
        return None
    spec = trigger.spec(params)
    scope.trigger, scope.automatable = spec, scope.catalog.models.get(spec.model)
    if not trigger.has_record:
        return spec
    if scope.automatable is None:
        message = _("Rules can't listen to “%(model)s”.") % {"model": spec.model[:80]}
        scope.wrong("/trigger/params/model", message, "unknown_model")
        return spec
    for pointer, message in trigger.check(params, scope.automatable):
        scope.wrong(f"/trigger/params{pointer}", message, "wrong_trigger")
    return spec


def _again(definition: Definition) -> Again:
    """What is written; else a rule that waits first keeps the run that waits already."""
    if definition.again is not None:
        return definition.again
    first = next((step for step in definition.steps if not step.off), None)
    return "keep" if isinstance(first, DelayStep) else "both"


def _limit(definition: Definition) -> RunLimit | None:
    part = definition.limit
    return None if part is None else RunLimit(part.runs, Span.parse(part.per))
