"""Says which connections, members and groups a tenant has, which rules use one, and which rules have lost one."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from django.db import transaction

from automation.catalog import registry
from automation.core.errors import DefinitionError, Problem
from automation.definitions.compile import compile_definition
from automation.engine import notices
from automation.models import Connection, Rule
from automation.store import clock, pauses
from automation.store import rules as rule_rows
from tenants import audit
from tenants.context import acting_for, current_tenant
from tenants.models import Group, Membership

BROKEN = "broken_reference"


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

    @cached_property
    def _connections(self) -> dict[str, str]:
        with acting_for(self.tenant_id):
            return dict(Connection.objects.values_list("name", "kind"))

    @cached_property
    def _members(self) -> frozenset[int]:
        with acting_for(self.tenant_id):
            return frozenset(Membership.objects.filter(is_active=True).values_list("id", flat=True))

    @cached_property
    def _groups(self) -> frozenset[str]:
        with acting_for(self.tenant_id):
            return frozenset(Group.objects.values_list("name", flat=True))


def problems_of(definition: Any, references: References, *, published: bool = False) -> list[Problem]:
    """Everything that is wrong with a definition; empty when it can be published, or, when it was, can go on."""
    try:
        compile_definition(definition, registry, references, published=published)
    except DefinitionError as error:
        return error.problems
    return []


def rules_that_lose(
    *, connections: Iterable[str] = (), members: Iterable[int] = (), groups: Iterable[str] = ()
) -> list[Rule]:
    """The current tenant's rules that are on and would be broken if these were gone: to be listed before a deletion."""
    tenant_id = current_tenant()
    now, then = References(tenant_id), _Without(tenant_id, connections, members, groups)
    return [
        rule
        for rule, definition in _live()
        if problems_of(definition, then, published=True) and not problems_of(definition, now, published=True)
    ]


def switch_off_broken() -> list[Rule]:
    """Switches off the current tenant's rules that name something which is gone, and tells their people.

    To be called after a connection, member or group was deleted. Their waiting runs are held, their events aren't
    matched by them, and no other rule is touched.
    """
    tenant_id = current_tenant()
    references = References(tenant_id)
    live = ((rule, problems_of(definition, references, published=True)) for rule, definition in _live())
    broken = [(rule, found) for rule, found in live if found]
    for rule, problems in broken:
        _switch_off(tenant_id, rule, problems)
    return [rule for rule, _problems in broken]


def tell_owners_gone() -> None:
    """Tells the current tenant's admins which rules that are on have lost their owner, once for each; they go on.

    To be called after somebody left.
    """
    people = Membership.objects.filter(is_active=True, user__is_active=True).values("user_id")
    alone = Rule.objects.filter(on=True, deleted_at=None, owner__isnull=False).exclude(owner__in=people).order_by("id")
    with transaction.atomic():
        told = (notices.owner_gone_notice(rule) for rule in alone)
        notices.tell([notice for notice in told if notice is not None])


class _Without(References):
    """The tenant's references as they would be without some of them."""

    def __init__(
        self, tenant_id: int, connections: Iterable[str], members: Iterable[int], groups: Iterable[str]
    ) -> None:
        super().__init__(tenant_id)
        self._gone = (frozenset(connections), frozenset(members), frozenset(groups))

    def connection(self, name: str) -> str | None:
        return None if name in self._gone[0] else super().connection(name)

    def member(self, member_id: int) -> bool:
        return member_id not in self._gone[1] and super().member(member_id)

    def group(self, name: str) -> bool:
        return name not in self._gone[2] and super().group(name)


def _live() -> Iterator[tuple[Rule, Any]]:
    rules = Rule.objects.filter(on=True, deleted_at=None, published__isnull=False).select_related("published")
    for rule in rules.order_by("position", "id"):
        if rule.published is not None:
            yield rule, rule.published.definition


def _switch_off(tenant_id: int, rule: Rule, problems: list[Problem]) -> None:
    with transaction.atomic():
        if not rule_rows.set_switch(rule.pk, on=False, off_mode="hold"):
            return
        found = [str(problem) for problem in problems]
        audit.record(
            "switch_off",
            f"rule:{rule.pk}",
            tenant_id=tenant_id,
            reason=BROKEN,
            before={"on": True},
            after={"on": False, "waiting": "hold", "problems": found},
        )
        notice = notices.rule_off_notice(
            tenant_id=tenant_id,
            rule_id=rule.pk,
            rule_name=rule.name,
            reason=BROKEN,
            problems=found,
            now=clock.now(),
        )
        notices.tell([notice])
        pauses.bump_rules(tenant_id)
