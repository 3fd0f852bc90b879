"""Says why a rule ran for the events of a record, or didn't: the first gate that stopped each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from automation.core.conditions import LeafReport
from automation.core.deciding import decisive
from automation.core.erased import GONE, judge_stored
from automation.core.gates import Gate, Heard, reason_of, trigger_gate
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.engine import explain_words as words
from automation.engine.answers import Answer, Comparison, Explanation
from automation.engine.guards_explained import Guards
from automation.engine.labels import label
from automation.engine.operate.held import dropped_at
from automation.engine.rule_history import RuleHistory, RuleState, histories
from automation.engine.ruleset import Compiled, compiled
from automation.engine.sayings import comparisons
from automation.models import DeadLetter, Event, Pause, Rule, RuleVersion, Run
from tenants.context import current_tenant
from tenants.models import Tenant

LENGTH = 50
"""How many events one answer goes through."""
FAR = 1000  # events waiting before one are counted to here


def explain(
    rule_id: int,
    *,
    model: str,
    record: int,
    since: datetime | None = None,
    until: datetime | None = None,
    after: int = 0,
    limit: int = LENGTH,
) -> Explanation:
    """Why a rule of the current tenant ran for the events of a record, or didn't.

    Without `since` and `until` the newest events; `after` an event's id goes on from there. A deleted rule is
    explained, too. `Rule.DoesNotExist` for none of the tenant's; a record without events gets a sentence that says so.
    """
    rule = Rule.objects.select_related("published").get(pk=rule_id)
    found = Event.objects.filter(model=model, record=record, id__gt=after)
    found = found if since is None else found.filter(created_at__gte=since)
    found = found if until is None else found.filter(created_at__lte=until)
    is_open = since is None and until is None and not after
    events = list(found.order_by("-id" if is_open else "id")[: limit + 1])
    is_cut, events = len(events) > limit, events[:limit]
    answers = tuple(_answers([rule], sorted(events, key=lambda event: event.pk)))
    sentence = words.summary(answers) if answers else words.no_events(rule, model, record, since, until)
    more, earlier = is_cut and not is_open, is_cut and is_open
    return Explanation(rule, model, record, label(model, record), answers, sentence, more=more, earlier=earlier)


def explain_event(event_id: int) -> list[Answer]:
    """What became of one event at every rule of the current tenant that listens to its kind of record, in their order.

    `Event.DoesNotExist` for none of the tenant's. Rules that were made later or deleted before are left out.
    """
    event = Event.objects.get(pk=event_id)
    rules = Rule.objects.order_by("position", "id")
    unconcerned = (Gate.NOT_MADE, Gate.DELETED, Gate.UNPUBLISHED, Gate.KIND, Gate.MODEL, Gate.OTHER_RULE)
    return [answer for answer in _answers(list(rules), [event]) if answer.run or answer.gate not in unconcerned]


def _answers(rules: Sequence[Rule], events: Sequence[Event]) -> Iterable[Answer]:
    explainer = _Explainer(rules, events)
    return [explainer.answer(explainer.histories[rule.pk], event) for event in events for rule in rules]


@dataclass(frozen=True, slots=True)
class _Judged:
    """How far an event comes at a rule in one of its states, its guards apart."""

    gate: Gate
    state: RuleState
    version: RuleVersion | None = None
    leaves: tuple[LeafReport, ...] = ()
    decided: frozenset[str] = frozenset()

    @property
    def matches(self) -> bool:
        """Whether the engine writes a run for it: one that starts, or one that is suppressed."""
        return self.gate in (Gate.RAN, Gate.UNDECIDED)


class _Explainer:
    """Everything that a number of events and rules need to be explained, read at once."""

    def __init__(self, rules: Sequence[Rule], events: Sequence[Event]) -> None:
        self.histories = histories(rules)
        ids = [event.pk for event in events]
        own = Run.objects.filter(event_id__in=ids, origin="event", forked_from_run=None, rule__in=rules)
        own = own.select_related("rule_version", "rule", "event").defer("rule_version__definition")
        self.runs = {(run.event_id, run.rule_id): run for run in own}
        letters = DeadLetter.objects.filter(event_id__in=ids, run=None).exclude(resolution__startswith="retried")
        self.set_aside = set(letters.values_list("event_id", flat=True))
        self.dropped = dropped_at(event.matched_at for event in events if event.matched_at is not None)
        self.guards = Guards(run for run in self.runs.values() if run.state == "suppressed")
        self.tenant = Tenant.objects.get(pk=current_tenant())
        self.zone = self.tenant.zone
        self.versions = RuleVersion.objects.in_bulk(self._wanted(events))
        self._texts: dict[int, Mapping[str, str]] = {}

    def _wanted(self, events: Sequence[Event]) -> set[int]:
        """The versions that were live when these events were matched, or that their runs have pinned."""
        wanted = {run.rule_version_id for run in self.runs.values()}
        for matched_at in (event.matched_at for event in events if event.matched_at is not None):
            for history in self.histories.values():
                states = history.around(matched_at)
                wanted |= {state.version.pk for state in states if state.ran and state.version}
        return wanted

    def answer(self, history: RuleHistory, event: Event) -> Answer:
        """One event at one rule."""
        run = self.runs.get((event.pk, history.rule.pk))
        if run is not None:
            return self._of_run(history, event, run)
        if event.matched_at is None:
            return self._told(history.rule, event, Gate.WAITS, self._waits(event))
        if event.pk in self.set_aside:
            return self._told(history.rule, event, Gate.SET_ASIDE, words.set_aside())
        if event.matched_at in self.dropped:
            said = words.dropped(self.dropped[event.matched_at], zone=self.zone)
            return self._told(history.rule, event, Gate.DROPPED, said)
        if event.details_removed_at is not None:
            gate = Gate.ERASED if event.facts.get("erased") else Gate.FORGOTTEN
            return self._told(history.rule, event, gate, words.erased() if gate is Gate.ERASED else words.forgotten())
        if event.facts.get("quiet"):
            return self._told(history.rule, event, Gate.QUIET, words.quiet(event.batch))
        judged = [self._judge(history.rule, state, event) for state in history.around(event.matched_at)]
        # Of a state in which it may have run or not nobody can say that it was the other.
        unknown = next((one for one in judged if one.gate is Gate.ERASED), None)
        found = unknown or next((one for one in judged if not one.matches), None)
        if found is None:
            return replace(self._judged(history.rule, event, judged[0], words.unexplained()), agrees=False)
        return self._judged(history.rule, event, found, self._stopped(history.rule, event, found))

    def _of_run(self, history: RuleHistory, event: Event, run: Run) -> Answer:
        """An event that the rule matched: its run knows the version, and the reason where it was suppressed."""
        state = replace(history.states[0], made=True, deleted=False, on=True, version=run.rule_version)
        forgotten = event.details_removed_at is not None
        found = _Judged(Gate.RAN, state, run.rule_version) if forgotten else self._judge(history.rule, state, event)
        gone, undecided = found.gate is Gate.ERASED, found.gate is Gate.UNDECIDED
        agrees = found.matches or gone
        if run.state == "suppressed":
            gate = Gate.UNDECIDED if undecided else Gate.GUARD
            said = self.guards.sentence(run, event, undecided=undecided)
        else:
            gate, said, agrees = Gate.RAN, words.ran(run), gone or found.gate is Gate.RAN
        answer = self._judged(history.rule, event, replace(found, gate=gate), said)
        return replace(answer, run=run, reason=run.reason, agrees=agrees)

    def _judge(self, rule: Rule, state: RuleState, event: Event) -> _Judged:
        gate = _state_gate(state)
        if gate is not None or state.version is None:
            return _Judged(gate or Gate.UNPUBLISHED, state, state.version)
        version = compiled(self.versions[state.version.pk], rule)
        if version.trigger is None:
            return _Judged(Gate.BROKEN, state, state.version)
        gate = trigger_gate(version.trigger, rule.pk, _heard(event))
        if gate is not None:
            return _Judged(gate, state, state.version)
        return self._condition(version, state, event)

    def _condition(self, version: Compiled, state: RuleState, event: Event) -> _Judged:
        if version.judge is None or version.spec is None:
            return _Judged(Gate.UNDECIDED, state, state.version)
        moment = Moment(now=event.created_at, zone=self.zone)
        verdict, reports = judge_stored(version.spec.condition, event.facts, moment)
        leaves = tuple(reports)
        decided = frozenset(decisive(version.spec.condition, leaves))
        gates = {"true": Gate.RAN, "false": Gate.CONDITION, "unknown": Gate.UNDECIDED}
        gate = Gate.ERASED if verdict.reason == GONE else gates[verdict.value]
        return _Judged(gate, state, state.version, leaves, decided)

    def _stopped(self, rule: Rule, event: Event, found: _Judged) -> str:
        if found.gate is Gate.ERASED:
            return words.erased()
        if found.gate is Gate.CONDITION:
            return words.condition_failed([one for one in self._comparisons(found, event) if one.decided])
        live = self.versions.get(found.version.pk) if found.version else None
        trigger = compiled(live, rule).trigger if live else None
        return words.stopped(found.gate, event, state=found.state, trigger=trigger, zone=self.zone)

    def _waits(self, event: Event) -> str:
        if self.tenant.closed_at is not None:
            return words.closed()
        whose = Q(scope="tenant", tenant_id=event.tenant_id) | Q(scope="installation")
        pause = Pause.objects.filter(whose, ended_at=None).order_by("id").first()
        before = Event.objects.filter(matched_at=None, id__lt=event.pk)[:FAR].count()
        return words.waits(pause, before, zone=self.zone)

    def _told(self, rule: Rule, event: Event, gate: Gate, sentence: str) -> Answer:
        return Answer(event, rule.pk, rule.name, gate, reason_of(gate), sentence, None, (), None, agrees=True)

    def _judged(self, rule: Rule, event: Event, found: _Judged, sentence: str) -> Answer:
        number = found.version.number if found.version else None
        told = tuple(self._comparisons(found, event))
        return Answer(
            event, rule.pk, rule.name, found.gate, reason_of(found.gate), sentence, number, told, None, agrees=True
        )

    def _comparisons(self, found: _Judged, event: Event) -> Iterable[Comparison]:
        if found.version is None or not found.leaves:
            return []
        texts = self._texts.get(found.version.pk)
        if texts is None:
            texts = self._texts[found.version.pk] = comparisons(self.versions[found.version.pk].definition, event.model)
        return [
            Comparison(
                leaf.id,
                texts.get(leaf.id) or f"{leaf.field} {leaf.op}",
                leaf.wanted,
                leaf.read,
                leaf.result,
                _remark(leaf),
                leaf.id in found.decided,
            )
            for leaf in found.leaves
        ]


def _remark(leaf: LeafReport) -> str:
    """What people should know of a comparison: of a change that there was none, which isn't an empty value."""
    operator = OPERATORS.get(leaf.op)
    if operator is not None and operator.reads == "change" and leaf.read is None and leaf.result != "not_needed":
        return "unchanged"
    return leaf.reason


def _state_gate(state: RuleState) -> Gate | None:
    if not state.made:
        return Gate.NOT_MADE
    if state.deleted:
        return Gate.DELETED
    if state.version is None:
        return Gate.UNPUBLISHED
    return None if state.on else Gate.OFF


def _heard(event: Event) -> Heard:
    changed = list(event.facts.get("after") or ())
    outcomes = list(event.facts.get("outcomes") or ())
    return Heard(event.kind, event.model, event.name, event.change, event.source, changed, outcomes)
