"""Finds what people should look at in rules before it happens: loops, contradictions, what is gone, what is silent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from automation.catalog import registry
from automation.core.circles import cycles
from automation.core.contradictions import contradictions
from automation.core.errors import DefinitionError, Problem
from automation.core.footprints import Footprint
from automation.core.loops import Fields
from automation.core.moments import Moment
from automation.core.overlaps import overlaps
from automation.core.spec import RuleSpec
from automation.definitions.compile import compile_definition
from automation.definitions.tree import parts
from automation.engine import finding_words as words
from automation.engine.finding import Finding, Place, Severity
from automation.engine.footprinting import footprint, known_fields
from automation.engine.loop_graphs import hops_among
from automation.engine.references import References, problems_of
from automation.engine.ruleset import Anything, compiled
from automation.engine.silence import silent
from automation.models import Rule
from automation.store import clock
from tenants.context import current_tenant
from tenants.models import Tenant

MOST = 200
"""Findings of a kind that one answer gives."""


def findings() -> list[Finding]:
    """Everything there is to say of the current tenant's rules that are on; the gravest first."""
    return _sorted([*_Look(_live()).all(), *_broken()])


def findings_of(rule_id: int, definition: dict[str, Any] | None = None) -> list[Finding]:
    """What concerns one rule of the current tenant, beside those that are on.

    With a definition as if it were live, and so of a draft before it is published; without one as it stands, or would
    once it is switched on. A draft that can't be compiled has problems of its own, and no findings.
    `Rule.DoesNotExist` for none of the tenant's.
    """
    rule = Rule.objects.select_related("published").get(pk=rule_id, deleted_at=None)
    whole = definition if definition is not None else rule.published.definition if rule.published else None
    spec = _spec(whole)
    if whole is None or spec is None:
        broken = definition is None and rule.on
        return list(_dead_references(rule, whole, References(current_tenant()))) if broken else []
    others = [one for one in _live() if one[0].pk != rule.pk]
    look = _Look([*others, (rule, spec, whole)], only=rule.pk)
    return _sorted(look.all())


Entry = tuple[Rule, RuleSpec, dict[str, Any]]


def _live() -> list[Entry]:
    rules = Rule.objects.filter(on=True, deleted_at=None, published__isnull=False).select_related("published")
    found: list[Entry] = []
    for rule in rules.order_by("position", "id"):
        version = rule.published
        spec = compiled(version, rule).spec if version is not None else None
        if version is not None and spec is not None:
            found.append((rule, spec, version.definition))
    return found


def _broken() -> Iterator[Finding]:
    """What is gone from rules that are on and can't be compiled any more: of these nothing else can be told."""
    references = References(current_tenant())
    for rule in Rule.objects.filter(on=True, deleted_at=None, published__isnull=False).select_related("published"):
        version = rule.published
        if version is not None and compiled(version, rule).spec is None:
            yield from _dead_references(rule, version.definition, references)


def _dead_references(rule: Rule, whole: Any, references: References) -> Iterator[Finding]:
    """Judged as a draft is: an action that this release doesn't have is gone, whoever may have it still."""
    for problem in problems_of(whole, references):
        place = Place(rule.pk, rule.name, _node(whole, problem), problem.pointer)
        yield Finding("dead_reference", "problem", (place,), words.dead_reference(rule.name, problem.message))


def _spec(definition: Any) -> RuleSpec | None:
    try:
        return compile_definition(definition, registry, Anything()) if definition is not None else None
    except DefinitionError:
        return None


@dataclass(slots=True)
class _Context:
    """The rules that are looked at together."""

    footprints: list[Footprint]
    fields: Fields
    moment: Moment


class _Look:
    """One look at a number of rules; `only` what concerns one of them."""

    def __init__(self, entries: Sequence[Entry], only: int | None = None) -> None:
        tenant = Tenant.objects.get(pk=current_tenant())
        self.entries, self.only, self.tenant_id = entries, only, tenant.pk
        self.names = {rule.pk: rule.name for rule, _spec, _whole in entries}
        footprints = [footprint(rule, spec, tenant.zone) for rule, spec, _whole in entries]
        # What was worked out for spans of time serves the next look: the hour makes no difference to it.
        moment = Moment(clock.now().replace(minute=0, second=0, microsecond=0), tenant.zone)
        self.context = _Context(footprints, known_fields(), moment)
        self.references = References(tenant.pk)
        self.zone = tenant.zone

    def all(self) -> Iterator[Finding]:
        yield from self.loops()
        yield from self.overlaps()
        for rule, spec, whole in self.entries:
            if self.only in (None, rule.pk):
                yield from self.contradictions(rule, spec, whole)
                yield from _dead_references(rule, whole, self.references)
        yield from self.silent()

    def loops(self) -> Iterator[Finding]:
        found = hops_among(self.tenant_id, self.context.footprints, self.context.moment)
        for cycle in cycles(found, through=self.only):
            places = tuple(Place(hop.rule_id, self.names[hop.rule_id], hop.node) for hop in cycle.hops)
            sentence = words.loop(cycle, self.names, self._model)
            yield Finding("loop", "warning", places, sentence, certain=cycle.certain)

    def overlaps(self) -> Iterator[Finding]:
        context = self.context
        found = overlaps(context.footprints, context.fields, context.moment, through=self.only)
        for one in islice(found, MOST):
            places = (
                Place(one.rule_id, self.names[one.rule_id], one.node),
                Place(one.later_rule, self.names[one.later_rule], one.later_node),
            )
            yield Finding("two_writers", "note", places, words.two_writers(one, self.names))

    def contradictions(self, rule: Rule, spec: RuleSpec, whole: dict[str, Any]) -> Iterator[Finding]:
        known = self.context.fields.get(spec.trigger.model, {})
        for one in contradictions(spec, known, self.context.moment):
            place = Place(rule.pk, rule.name, one.node, _pointer(whole, one.node))
            yield Finding(
                one.kind,
                _GRAVITY.get(one.kind, "warning"),
                (place,),
                words.contradiction(one.kind, rule.name, place.pointer),
            )

    def silent(self) -> Iterator[Finding]:
        rules = [rule for rule, _spec, _whole in self.entries if rule.on and self.only in (None, rule.pk)]
        for one in silent(rules):
            place = Place(one.rule_id, self.names[one.rule_id], "")
            yield Finding("silent", "warning", (place,), words.silent(one, self.names[one.rule_id], self.zone))

    def _model(self, rule_id: int) -> str:
        found = next((one for one in self.context.footprints if one.rule_id == rule_id), None)
        return found.spec.trigger.model if found else ""


_GRAVITY: dict[str, Severity] = {"never": "problem", "nearly_always": "note"}


def _pointer(whole: dict[str, Any], node: str) -> str:
    return next((part.pointer for part in parts(whole) if part.value.get("id") == node), "")


def _node(whole: dict[str, Any], problem: Problem) -> str:
    """The id of the innermost part in which a problem lies."""
    around = [part for part in parts(whole) if f"{problem.pointer}/".startswith(f"{part.pointer}/")]
    return str(max(around, key=lambda part: len(part.pointer)).value.get("id", "")) if around else ""


def _sorted(found: Iterable[Finding]) -> list[Finding]:
    grave = {"problem": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda one: (grave[one.severity], not one.certain))
