"""Says which connections, members and groups a tenant has, and switches off the rules that have lost one."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import QuerySet

from automation.catalog import registry
from automation.core.errors import DefinitionError, Problem
from automation.definitions import scope
from automation.definitions.compile import compile_definition
from automation.engine import notices
from automation.models import Connection, Rule
from automation.store import clock
from automation.store import rules as rule_rows
from automation.store.waves import NewNotice
from tenants import audit
from tenants.context import acting_for, current_tenant
from tenants.models import Group, Membership

BROKEN = "broken_reference"
OF_THE_TENANT = frozenset({"missing_connection", "wrong_connection", "missing_group", "missing_member"})


@dataclass(frozen=True, slots=True)
class Off:
    """Rules that were switched off, in the order in which they run, and what their people are still to be told."""

    rules: list[Rule] = field(default_factory=list)
    notices: list[NewNotice] = field(default_factory=list)


class References:
    """What definitions of a tenant may name; each kind is read once, when it is first asked for."""

    def __init__(self, tenant_id: int) -> None:
        self.tenant_id = tenant_id

    def connection(self, name: str) -> str | None:
        """The kind of the tenant's connection of that name; None where it has none."""
        return self._connections.get(name)

    def member(self, member_id: int) -> bool:
        """Whether the tenant has that member, and he hasn't left."""
        return member_id in self._members

    def group(self, name: str) -> bool:
        """Whether the tenant has a group of that name."""
        return name in self._groups

    def record(self, target: str, record_id: int) -> bool:
        """Whether the tenant has that record of a model; a member, while he hasn't left."""
        if target == scope.MEMBERS:
            return self.member(record_id)
        with acting_for(self.tenant_id):
            return bool(apps.get_model(target).objects.filter(pk=record_id).exists())

    def content(self) -> int:
        """A number that is the same as long as the tenant has the same; of this process only."""
        return hash((frozenset(self._connections.items()), self._members, self._groups))

    @cached_property
    def _connections(self) -> dict[str, str]:
        with acting_for(self.tenant_id):
            return dict(Connection.objects.values_list("name", "kind"))

    @cached_property
    def _members(self) -> frozenset[int]:
        with acting_for(self.tenant_id):
            return frozenset(people().values_list("id", flat=True))

    @cached_property
    def _groups(self) -> frozenset[str]:
        with acting_for(self.tenant_id):
            return frozenset(Group.objects.values_list("name", flat=True))


def people() -> QuerySet[Membership]:
    """The current tenant's people: whoever left, or can't log in any more, isn't one of them."""
    return Membership.objects.filter(is_active=True, user__is_active=True)


def problems_of(
    definition: Any, references: scope.References, *, published: bool = False, catalog: scope.Catalog = registry
) -> list[Problem]:
    """Everything that is wrong with a definition; empty when it can be published, or, when it was, can go on."""
    try:
        compile_definition(definition, catalog, references, published=published)
    except DefinitionError as error:
        return error.problems
    return []


def broken_rules(
    references: References, *, fields_too: bool = True, sound: Collection[int] = ()
) -> list[tuple[Rule, list[Problem]]]:
    """The current tenant's rules that are on and name something which is gone, each with its problems.

    Without `fields_too` only what the tenant keeps itself counts: connections, groups and members. What this process's
    catalog lacks may be of a newer release. Versions in `sound` (ids) aren't judged again.
    """
    found = []
    for rule, definition in _live():
        if rule.published_id in sound:
            continue
        problems = problems_of(definition, references, published=True)
        counted = [one for one in problems if fields_too or one.code in OF_THE_TENANT]
        if counted:
            found.append((rule, counted))
    return found


def live_versions() -> frozenset[int]:
    """The ids of the versions of the current tenant's rules that are on."""
    live = Rule.objects.filter(on=True, deleted_at=None, published__isnull=False)
    return frozenset(pk for pk in live.values_list("published_id", flat=True) if pk is not None)


def switch_off_broken(
    references: References | None = None, *, fields_too: bool = True, sound: Collection[int] = ()
) -> list[Rule]:
    """Switches off the current tenant's rules that name something which is gone, and tells their people.

    To be called after a connection, member, group or field was deleted. Their waiting runs are held, their events
    aren't matched by them, and no other rule is touched. Versions in `sound` aren't judged again. Answers the rules;
    one of which another version is live by now is left alone.
    """
    tenant_id = current_tenant()
    known = references or References(tenant_id)
    with transaction.atomic():
        off = switch_off(known, broken_rules(known, fields_too=fields_too, sound=sound))
        if off.rules:
            notices.tell(off.notices, changed=[tenant_id])
    return off.rules


def switch_off(references: References, broken: Collection[tuple[Rule, list[Problem]]]) -> Off:
    """Switches off rules of the current tenant in the caller's transaction, in the order of their ids.

    The caller tells of all together once no rule is to be locked any more: a publisher locks his rule, then the lane.
    """
    off = Off()
    for rule, problems in sorted(broken, key=lambda one: one[0].pk):
        if not rule_rows.set_switch(rule.pk, on=False, off_mode="hold", published_id=rule.published_id):
            continue
        audit.record(
            "switch_off",
            f"rule:{rule.pk}",
            tenant_id=rule.tenant_id,
            reason=BROKEN,
            before={"on": True},
            after={"on": False, "waiting": "hold", "problems": [str(problem) for problem in problems]},
        )
        off.rules.append(rule)
        off.notices.append(_notice(rule, problems, references))
    off.rules.sort(key=lambda rule: (rule.position, rule.pk))
    return off


def _live() -> Iterator[tuple[Rule, Any]]:
    rules = Rule.objects.filter(on=True, deleted_at=None, published__isnull=False).select_related("published")
    for rule in rules.order_by("position", "id"):
        if rule.published is not None:
            yield rule, rule.published.definition


def _again(rule: Rule, problems: Collection[Problem], references: References) -> list[Problem]:
    """The same problems, said in the language of the moment."""
    places = {(one.pointer, one.code) for one in problems}
    definition = rule.published.definition if rule.published is not None else None
    return [one for one in problems_of(definition, references, published=True) if (one.pointer, one.code) in places]


def _notice(rule: Rule, problems: Collection[Problem], references: References) -> NewNotice:
    return notices.rule_off_notice(
        tenant_id=rule.tenant_id,
        rule_id=rule.pk,
        rule_name=rule.name,
        reason=BROKEN,
        problems=lambda: [str(one) for one in _again(rule, problems, references)],
        now=clock.now(),
    )
