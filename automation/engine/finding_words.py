"""The sentences of findings: one whole message for each."""

from collections.abc import Callable, Iterable, Mapping
from zoneinfo import ZoneInfo

from django.utils import formats
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.core.circles import Cycle, Hop
from automation.core.contradictions import Kind
from automation.core.overlaps import Overlap
from automation.engine.silence import Silence

Names = Mapping[int, str]
ModelOf = Callable[[int], str]


def loop(cycle: Cycle, names: Names, model_of: ModelOf) -> str:
    """Who starts whom, by what: "“Close” sets status, which starts “Reopen”, …", and what stops it."""
    if len(cycle.hops) == 1:
        return _itself(cycle.hops[0], names, model_of)
    chain = " → ".join(_hop(hop, names, model_of) for hop in cycle.hops)
    said = {"chain": chain, "first": names[cycle.hops[0].rule_id]}
    if cycle.certain:
        return _("These rules start each other in a circle: %(chain)s → “%(first)s”. The loop guard ends it.") % said
    return _("These rules can start each other in a circle: %(chain)s → “%(first)s”. The loop guard ends it.") % said


def two_writers(one: Overlap, names: Names) -> str:
    """Which field, which rules, and whose value stays."""
    said = {"field": _field(one.model, one.field), "first": names[one.rule_id], "later": names[one.later_rule]}
    return (
        _(
            "One event can start both “%(first)s” and “%(later)s”, and both write %(field)s: what “%(later)s” writes "
            "stays, as it comes later in the order."
        )
        % said
    )


def contradiction(kind: Kind, rule: str, pointer: str) -> str:
    """What can't be, or can't fail."""
    said = {"rule": rule, "pointer": pointer}
    return {
        "never": _("“%(rule)s” never runs: its condition can't hold for any event that it listens to."),
        "always": _("The condition of “%(rule)s” holds for every event that it listens to: it decides nothing."),
        "nearly_always": _("The condition of “%(rule)s” holds for nearly every event: only single values fail it."),
        "arm_never": _("A way of a branch of “%(rule)s” (%(pointer)s) is never taken: its condition can't hold there."),
        "otherwise_never": _("“Otherwise” of a branch of “%(rule)s” (%(pointer)s) is never taken."),
    }[kind] % said


def dead_reference(rule: str, message: str) -> str:
    """What a rule names that is gone."""
    return _("“%(rule)s”: %(message)s") % {"rule": rule, "message": message}


def silent(one: Silence, rule: str, zone: ZoneInfo) -> str:
    """Since when a rule that used to run hasn't, and how often it did."""
    said = {
        "rule": rule,
        "when": formats.date_format(one.last_run_at.astimezone(zone), "DATETIME_FORMAT"),
        "days": one.days,
        "gap": one.usual_days,
    }
    return (
        _(
            "“%(rule)s” has not run since %(when)s, for %(days)d days; before, it never went longer than %(gap)s days "
            "without a run."
        )
        % said
    )


def _itself(hop: Hop, names: Names, model_of: ModelOf) -> str:
    said = {"rule": names[hop.rule_id], "what": _fields(model_of(hop.rule_id), hop.fields)}
    if hop.created:
        return (
            _(
                "“%(rule)s” makes a record of the kind that it listens to, and can start itself again: the chain ends "
                "at the longest that is allowed."
            )
            % said
        )
    if hop.certain:
        return _("“%(rule)s” sets %(what)s, which starts it again. The loop guard ends it.") % said
    return _("“%(rule)s” sets %(what)s, which can start it again. The loop guard ends it.") % said


def _hop(hop: Hop, names: Names, model_of: ModelOf) -> str:
    said = {"rule": names[hop.rule_id], "what": _fields(model_of(hop.rule_id), hop.fields)}
    if not hop.node:
        return _("“%(rule)s” (its run ends)") % said
    if hop.created:
        return _("“%(rule)s” (makes a record)") % said
    return _("“%(rule)s” (sets %(what)s)") % said


def _fields(model: str, names: Iterable[str]) -> str:
    return ", ".join(_field(model, name) for name in names)


def _field(model: str, name: str) -> str:
    entry = registry.models.get(model)
    return entry.fields[name].label if entry is not None and name in entry.fields else name
