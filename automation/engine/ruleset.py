"""A tenant's live rules, compiled and indexed by what they listen to, kept under the lane's version number."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from automation.catalog import registry
from automation.catalog.action import Action, ActionParams, Template
from automation.catalog.params import ConnectionRef, load, places
from automation.core.automatic_mail import base
from automation.core.conditions import Verdict, compile_condition
from automation.core.errors import DefinitionError
from automation.core.spec import Condition, Node, RuleSpec, TriggerSpec
from automation.core.watching import needed_changes
from automation.definitions.compile import compile_definition
from automation.definitions.scope import ANY_KIND
from automation.engine.apart import rules_apart
from automation.engine.stopped import Pace, pace_of, paused
from automation.models import Connection, Limits, OwnAddress, Rule, RuleVersion
from tenants.models import Tenant

log = structlog.get_logger(__name__)
Judge = Callable[[Mapping[str, Any], Any], Verdict]
VERSIONS_KEPT, TENANTS_KEPT = 5000, 1000
RUN_ENDED = "run_ended"


class Anything:
    """References that were checked when the version was published: at run time each step looks for itself."""

    def connection(self, name: str) -> str | None:
        """Any name passes; its kind isn't judged again."""
        return ANY_KIND

    def member(self, member_id: int) -> bool:
        """Any member passes."""
        return True

    def group(self, name: str) -> bool:
        """Any group passes."""
        return True

    def record(self, target: str, record_id: int) -> bool:
        """Any record passes."""
        return True


@dataclass(slots=True)
class Compiled:
    """A version as the engine runs it: its spec, its judge, and the parameters of its actions."""

    version_id: int
    rule_id: int
    number: int
    name: str
    position: int
    spec: RuleSpec | None
    judge: Judge | None
    trigger: TriggerSpec | None = None  # known for a broken version too, as far as its trigger can be read
    broken: str = ""
    _params: dict[int, ActionParams] = field(default_factory=dict)
    _constants: dict[int, dict[str, Any] | None] = field(default_factory=dict)
    _arms: dict[int, Judge] = field(default_factory=dict)
    _connections: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def action(self, node: Node) -> Action | None:
        """The registered action of a node; None where this process doesn't know that version of it."""
        return registry.actions.get(node.action)

    def params(self, node: Node, action: Action) -> ActionParams:
        """The node's parameters, validated once; templates still unrendered."""
        found = self._params.get(node.index)
        if found is None:
            found = self._params[node.index] = load(action.Params, node.params)
        return found

    def constant(self, node: Node, action: Action) -> Mapping[str, Any] | None:
        """The node's parameters as traces show them, where no template is in them: the same for every run."""
        if node.index not in self._constants:
            params = self.params(node, action)
            templates = (place for place in places(params) if isinstance(place.marker, Template))
            plain = not any("{" in place.value for place in templates)
            self._constants[node.index] = params.model_dump(mode="json") if plain else None
        return self._constants[node.index]

    def connection_names(self, node: Node) -> tuple[str, ...]:
        """The connections that an action names; their names are no templates, so they are the same for every run."""
        if node.index not in self._connections:
            action = self.action(node)
            named = places(self.params(node, action)) if action is not None else ()
            self._connections[node.index] = tuple(
                place.value for place in named if isinstance(place.marker, ConnectionRef)
            )
        return self._connections[node.index]

    def arm(self, condition: Condition) -> Judge:
        """The compiled condition of an arm of a branch."""
        found = self._arms.get(id(condition))
        if found is None:
            found = self._arms[id(condition)] = _surely(compile_condition(condition), self.rule_id)
        return found


_versions: "OrderedDict[int, Compiled]" = OrderedDict()


def compiled(version: RuleVersion, rule: Rule) -> Compiled:
    """The compiled form of a version, kept by its id: a version never changes."""
    found = _versions.get(version.pk)
    if found is None:
        found = compile_version(version, rule)
        _versions[version.pk] = found
        if len(_versions) > VERSIONS_KEPT:
            _versions.popitem(last=False)
    found.name, found.position = rule.name, rule.position
    return found


def compile_version(version: RuleVersion, rule: Rule) -> Compiled:
    """The compiled form of a version, or of one that is in no table; kept nowhere."""
    base = (version.pk, rule.pk, version.number, rule.name, rule.position)
    try:
        spec = compile_definition(version.definition, registry, Anything(), published=True)
    except DefinitionError as error:
        log.warning("broken rule", rule_id=rule.pk, version=version.number, problems=str(error)[:500])
        return Compiled(*base, spec=None, judge=None, trigger=_trigger(version.definition), broken=str(error))
    except Exception as error:
        # A fault of ours with one rule: its events say so, and the tenant's other rules go on.
        log.exception("alarm", what="compile", rule_id=rule.pk, version=version.number)
        return Compiled(*base, spec=None, judge=None, broken=f"{type(error).__name__}: {error}")
    judge = _surely(compile_condition(spec.condition), rule.pk)
    return Compiled(*base, spec=spec, judge=judge, trigger=spec.trigger)


def _surely(judge: Judge, rule_id: int) -> Judge:
    """A judge for which a fault in judging is one more reason not to know: it stops neither other rules nor a run."""

    def judged(facts: Mapping[str, Any], moment: Any) -> Verdict:
        try:
            return judge(facts, moment)
        except Exception as error:
            log.exception("alarm", what="condition", rule_id=rule_id, error=type(error).__name__)
            return Verdict("unknown", "unknown_field")

    return judged


def _trigger(definition: Mapping[str, Any]) -> TriggerSpec | None:
    """What a version listens to that can't be compiled any more, so that its events can say why nothing runs."""
    given = definition.get("trigger")
    trigger = registry.triggers.get(given.get("kind", "")) if isinstance(given, dict) else None
    if trigger is None or not isinstance(given, dict):
        return None
    try:
        return trigger.spec(load(trigger.Params, given.get("params") or {}))
    except ValueError:
        return None


def by_version(version_ids: Iterable[int]) -> dict[int, Compiled]:
    """The compiled versions that runs have pinned, whatever became of their rules since."""
    wanted = set(version_ids)
    instead = rules_apart()
    if instead is not None and wanted == {one.version_id for one in instead.rules}:
        return {one.version_id: one for one in instead.rules}
    missing = [one for one in wanted if one not in _versions]
    if missing:
        for version in RuleVersion.objects.select_related("rule").filter(pk__in=missing):
            compiled(version, version.rule)
    return {one: _versions[one] for one in wanted if one in _versions}


@dataclass(slots=True)
class TenantRules:
    """What the engine has to know of a tenant: its rules in order, what is paused, its zone, limits and connections."""

    tenant_id: int
    version: int
    name: str
    zone: ZoneInfo
    max_depth: int
    rules: tuple[Compiled, ...]
    paused_rules: frozenset[int]
    held_rules: frozenset[int]
    deleted_rules: frozenset[int]
    paused_connections: Mapping[str, str]  # with the reason
    pace: Pace | None
    connections: Mapping[str, Connection]
    own_addresses: Mapping[str, bool]  # at which the tenant receives mail, and whether machines are answered there
    hears_ends: bool  # a rule listens to runs that end: only then are there events of them
    _index: dict[tuple[str, str, str], dict[str, list[Compiled]]]

    def candidates(self, *, kind: str, model: str, name: str, changed: Iterable[str]) -> list[Compiled]:
        """The rules that may match such an event, in position order; those that can't are never looked at."""
        by_field = self._index.get((kind, model, name))
        if not by_field:
            return []
        found = list(by_field.get("", ()))
        for path in changed:
            found += by_field.get(path, ())
        if len(found) > 1:
            found = sorted({one.rule_id: one for one in found}.values(), key=lambda one: (one.position, one.rule_id))
        return found

    def with_only(self, rule: Compiled, connections: Mapping[str, Connection]) -> "TenantRules":
        """The tenant as if this were its only rule, and nothing of it held; the order of rules is that of ids."""
        nothing: frozenset[int] = frozenset()
        return replace(
            self,
            rules=(rule,),
            paused_rules=nothing,
            held_rules=nothing,
            deleted_rules=nothing,
            paused_connections={},
            pace=None,
            connections=connections,
            _index=_indexed((rule,)),
        )


_tenants: "OrderedDict[int, TenantRules]" = OrderedDict()


def of_tenant(tenant_id: int, version: int) -> TenantRules:
    """The tenant's rules as of this version of its lane; loaded anew when the number moved."""
    instead: TenantRules | None = rules_apart()
    if instead is not None and instead.tenant_id == tenant_id:
        return instead
    found = _tenants.get(tenant_id)
    if found is None or found.version != version:
        found = _tenants[tenant_id] = _load(tenant_id, version)
        if len(_tenants) > TENANTS_KEPT:
            _tenants.popitem(last=False)
    _tenants.move_to_end(tenant_id)
    return found


def forget() -> None:
    """Empties the caches: for tests that take a database back."""
    _tenants.clear()
    _versions.clear()


def _load(tenant_id: int, version: int) -> TenantRules:
    tenant = Tenant.objects.get(pk=tenant_id)
    limits = Limits.objects.filter(tenant_id=tenant_id).first()
    live = Rule.objects.filter(tenant_id=tenant_id, on=True, deleted_at=None, published__isnull=False)
    rules = tuple(
        compiled(rule.published, rule)
        for rule in live.select_related("published").order_by("position", "id")
        if rule.published is not None
    )
    connections = {one.name: one for one in Connection.objects.filter(tenant_id=tenant_id)}
    paused_rules, paused_connections = paused(tenant_id, connections)
    own = OwnAddress.objects.filter(tenant_id=tenant_id)
    off = Rule.objects.filter(tenant_id=tenant_id, on=False, off_mode="hold", published__isnull=False)
    held = dict(off.values_list("id", "deleted_at"))
    return TenantRules(
        tenant_id=tenant_id,
        version=version,
        name=tenant.name,
        zone=tenant.zone,
        max_depth=limits.max_depth if limits else Limits._meta.get_field("max_depth").default,
        rules=rules,
        paused_rules=paused_rules,
        held_rules=frozenset(held),
        deleted_rules=frozenset(rule_id for rule_id, deleted_at in held.items() if deleted_at is not None),
        paused_connections=paused_connections,
        pace=pace_of(tenant_id),
        connections=connections,
        own_addresses={base(one.address): one.answers_automatic for one in own},
        hears_ends=any(rule.trigger is not None and rule.trigger.kind == RUN_ENDED for rule in rules),
        _index=_indexed(rules),
    )


def _indexed(rules: Iterable[Compiled]) -> dict[tuple[str, str, str], dict[str, list[Compiled]]]:
    index: dict[tuple[str, str, str], dict[str, list[Compiled]]] = {}
    for rule in rules:
        trigger = rule.trigger
        if trigger is None:
            continue
        by_field = index.setdefault((trigger.kind, trigger.model, trigger.name), {})
        for path in needed_changes(trigger, rule.spec):
            by_field.setdefault(path, []).append(rule)
    return index
