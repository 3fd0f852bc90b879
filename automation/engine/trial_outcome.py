"""Reads what a trial did, before it is rolled back, into its report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.core.conditions import compile_condition, explain
from automation.core.moments import Moment
from automation.engine.histories import history_of_run
from automation.engine.match import judge, listens
from automation.engine.reports import ConditionReport, FieldChange
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.samples import Sample
from automation.engine.trace import Trace, trace
from automation.engine.trial_report import Follow, Result, TrialReport, sentence, step_tried
from automation.models import Event, Run
from automation.outbound.recording import Request
from automation.store import events, runs
from automation.store.events import EventRow

MOST_FOLLOWS = 50
RESULTS: Mapping[str, Result] = {"succeeded": "would_run", "suppressed": "suppressed", "failed": "would_fail"}


@dataclass(frozen=True, slots=True)
class Tried:
    """What was tried: the rule, the tenant as it really is, the sample and its event, and what would have been sent."""

    rule: Compiled
    live: TenantRules
    sample: Sample
    event: Event
    sent: Mapping[int, list[Request]]


def report_of(tried: Tried, *, changes: Mapping[str, tuple[Any, Any]], seconds: float) -> TrialReport:
    """The report; inside the trial's transaction."""
    run = Run.objects.filter(event_id=tried.event.pk, rule_id=tried.rule.rule_id).first()
    found = trace(run.pk) if run is not None else None
    result, gate, why = _came_to(tried, found)
    return TrialReport(
        rule=tried.rule.name,
        origin=tried.sample.origin,
        at=tried.event.created_at,
        result=result,
        gate=gate,
        sentence=sentence(result, gate, why),
        condition=found.condition if found is not None else _condition(tried),
        steps=[step_tried(step, tried.sent.get(step.row.pk if step.row else 0, [])) for step in found.steps]
        if found is not None
        else [],
        changes=[_named(tried.sample.model, path, *pair) for path, pair in changes.items()],
        follows=_follows(tried),
        remarks=_remarks(tried, found),
        seconds=round(seconds, 3),
        history=history_of_run(run.pk) if run is not None else None,
    )


def _came_to(tried: Tried, found: Trace | None) -> tuple[Result, str, str]:
    """(result, what stopped it, why in words)."""
    if found is None:
        [row] = [one for one in _family(tried) if one.id == tried.event.pk]
        return (
            ("would_not_run", "condition", "")
            if listens(tried.rule, row)
            else ("would_not_run", "trigger", _deaf(tried, row))
        )
    error = next((step.row.error for step in found.steps if step.row and step.state in ("dead", "failed")), "")
    if found.reason == "delivery_unknown":
        return "would_fail", found.reason, error
    return RESULTS.get(found.state, "would_wait"), found.reason, error


def _deaf(tried: Tried, row: EventRow) -> str:
    """Why the trigger doesn't listen to the event."""
    trigger = tried.rule.trigger
    if trigger is None or (trigger.kind, trigger.model) != (row.kind, row.model):
        return _("The rule would not run: it listens to something else.")
    if trigger.on and row.change not in trigger.on:
        return _("The rule would not run: it doesn't listen to a record that is %(change)s.") % {"change": row.change}
    if trigger.sources and row.source not in trigger.sources:
        return _("The rule would not run: it doesn't listen to changes by %(source)s.") % {"source": row.source}
    return _("The rule would not run: none of the fields changed that it listens to.")


def _condition(tried: Tried) -> ConditionReport | None:
    spec = tried.rule.spec
    if spec is None:
        return None
    facts, moment = tried.event.facts, Moment(now=tried.event.created_at, zone=tried.live.zone)
    verdict, leaves = compile_condition(spec.condition)(facts, moment), explain(spec.condition, facts, moment)
    labels = {leaf.field: _named(tried.sample.model, leaf.field, None, None).label for leaf in leaves}
    return ConditionReport(verdict.value, verdict.reason, leaves, labels)


def _named(model: str, path: str, before: Any, after: Any) -> FieldChange:
    entry = registry.models.get(model)
    known = entry.fields.get(path) if entry else None
    return FieldChange(path, known.label if known else path, before, after)


def _family(tried: Tried) -> list[EventRow]:
    return events.of_root(tried.event.tenant_id, tried.event.pk, unmatched=False)


def _follows(tried: Tried) -> list[Follow]:
    """The changes that the rule made, and who among the live rules would run for them; itself isn't one of them."""
    made = [row for row in _family(tried) if row.cause.run_id is not None][:MOST_FOLLOWS]
    return [
        Follow(
            record=one.event.record_key,
            change=one.event.change,
            fields=one.event.changed(),
            rules=[chosen.rule.name for chosen in one.chosen if chosen.rule.rule_id != tried.rule.rule_id],
        )
        for one in judge(tried.live, made)
    ]


def _remarks(tried: Tried, found: Trace | None) -> list[str]:
    remarks, sample, rule = list(tried.sample.remarks), tried.sample, tried.rule
    if sample.facts.get("quiet"):
        remarks.append(_("It came by an import that no rule runs for, which the test leaves out of account."))
    if found is not None and sample.at is not None and sample.record is not None:
        remarks.append(_("Steps read and change the record as it is now, which may have moved on since."))
    if found is not None and sample.record is not None and rule.spec is not None and rule.spec.again != "both":
        key = (rule.rule_id, sample.model, sample.record)
        if runs.waiting(tried.event.tenant_id, [key]).get(key, [found.run.pk]) != [found.run.pk]:
            remarks.append(_("A run of this rule waits for the record already, which the test leaves out of account."))
    return remarks
