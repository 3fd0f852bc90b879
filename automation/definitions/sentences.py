"""A rule read back in plain words."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pydantic import ValidationError

from automation.catalog.automatable import Automatable
from automation.catalog.params import load
from automation.core.calendars import Span
from automation.core.spec import Imports
from automation.definitions.phrases import NameOf, condition_words, duration_words
from automation.definitions.schema import (
    ActionStep,
    AnyStep,
    BranchStep,
    ConditionPart,
    Definition,
    DelayStep,
    LimitPart,
    StopStep,
    TriggerPart,
    parse,
)
from automation.definitions.scope import Catalog

__all__ = ["condition_sentence", "sentence", "step_sentence", "trigger_sentence"]


def _no_name(model: str, record_id: int) -> str | None:
    return None


def sentence(definition: Mapping[str, Any] | Definition, catalog: Catalog, *, name_of: NameOf = _no_name) -> str:
    """The whole rule: "When a ticket is updated and priority becomes urgent: page on call …".

    What the catalog no longer knows is shown by its name in the definition. `name_of(model, id)` gives names of records
    that references point to. DefinitionError when the definition hasn't the right shape.
    """
    rule = definition if isinstance(definition, Definition) else parse(definition)
    places = {
        "trigger": trigger_sentence(rule.trigger, catalog),
        "condition": condition_sentence(rule.condition, _automatable(rule.trigger, catalog), name_of=name_of),
        "steps": _steps_words(rule.steps, _automatable(rule.trigger, catalog), catalog, name_of),
    }
    if rule.condition is None:
        words = _("%(trigger)s: %(steps)s") % places
    else:
        words = _("%(trigger)s and %(condition)s: %(steps)s") % places
    if rule.limit is not None:
        words = _limited(words, rule.limit)
    return _about_imports(rule.imports) % {"rule": words}


def _limited(whole: str, limit: LimitPart) -> str:
    words = ngettext(
        "%(rule)s (at most %(runs)d time for a record in %(span)s)",
        "%(rule)s (at most %(runs)d times for a record in %(span)s)",
        limit.runs,
    )
    return words % {"rule": whole, "runs": limit.runs, "span": duration_words(Span.parse(limit.per))}


def trigger_sentence(part: TriggerPart, catalog: Catalog) -> str:
    """What the rule listens to: "When a ticket is updated"."""
    trigger, automatable = catalog.triggers.get(part.kind), _automatable(part, catalog)
    if trigger is not None and (automatable is not None or not trigger.has_record):
        try:
            return trigger.sentence(load(trigger.Params, part.params), automatable)
        except ValidationError:
            pass
    return _("When “%(kind)s” happens") % {"kind": part.kind}


def condition_sentence(
    part: ConditionPart | None, automatable: Automatable | None, *, name_of: NameOf = _no_name
) -> str:
    """The condition as a clause: "priority becomes urgent and (…)"; "always" for none."""
    return _("always") if part is None else condition_words(part, automatable, name_of)


def step_sentence(
    step: AnyStep, automatable: Automatable | None, catalog: Catalog, *, name_of: NameOf = _no_name
) -> str:
    """What one step does, with the steps in it."""
    words = _step_words(step, automatable, catalog, name_of)
    return _("(switched off: %(step)s)") % {"step": words} if step.off else words


def _about_imports(imports: Imports) -> str:
    if imports == "skip":
        return _("%(rule)s (not for imported records)")
    return _("%(rule)s (once for each import)") if imports == "once" else "%(rule)s"


def _step_words(step: AnyStep, automatable: Automatable | None, catalog: Catalog, name_of: NameOf) -> str:
    if isinstance(step, ActionStep):
        return _action_words(step, catalog)
    if isinstance(step, DelayStep):
        return _("wait %(duration)s") % {"duration": duration_words(Span.parse(step.duration))}
    if isinstance(step, StopStep):
        later = step.ends == "later_rules"
        return _("stop, and run no later rule for this event") if later else _("stop")
    return _branch_words(step, automatable, catalog, name_of)


def _branch_words(step: BranchStep, automatable: Automatable | None, catalog: Catalog, name_of: NameOf) -> str:
    arms = [
        _("if %(condition)s: %(steps)s")
        % {
            "condition": condition_words(arm.condition, automatable, name_of),
            "steps": _steps_words(arm.steps, automatable, catalog, name_of),
        }
        for arm in step.arms
    ]
    places = {"arms": "; ".join(arms), "steps": _steps_words(step.otherwise, automatable, catalog, name_of)}
    return _("[%(arms)s; otherwise: %(steps)s]") % places if step.otherwise else _("[%(arms)s]") % places


def _action_words(step: ActionStep, catalog: Catalog) -> str:
    action = catalog.actions.get(f"{step.action}@{step.version}")
    if action is None:
        return _("“%(action)s”, which is not known here") % {"action": step.action}
    try:
        return action.sentence(load(action.Params, step.params))
    except ValidationError:
        return str(action.label)


def _steps_words(steps: Sequence[AnyStep], automatable: Automatable | None, catalog: Catalog, name_of: NameOf) -> str:
    words = [step_sentence(step, automatable, catalog, name_of=name_of) for step in steps]
    if not words:
        return _("do nothing")
    joined = words[0]
    for word in words[1:]:
        joined = _("%(one)s, then %(other)s") % {"one": joined, "other": word}
    return joined


def _automatable(part: TriggerPart, catalog: Catalog) -> Automatable | None:
    model = part.params.get("model")
    return catalog.models.get(model) if isinstance(model, str) else None
