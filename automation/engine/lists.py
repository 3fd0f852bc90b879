"""What the lists of rules, runs and dead letters show."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Min, QuerySet

from automation.core.states import LIVE_RUN
from automation.models import DeadLetter, Pause, Rule, Run
from tenants.context import current_tenant
from tenants.models import Membership

RECENT = 200  # a rule's latest runs, of which its line in the list tells the outcomes
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule in the list. `live` runs and open dead letters are counted to `COUNTED`; `recent` is {state: runs} of its
    latest `RECENT` ones. `unpublished`: the draft says something else than the live version.
    """

    rule: Rule
    version: int | None
    definition: dict[str, Any]
    unpublished: bool
    pause: Pause | None
    owner: str
    owner_gone: bool
    live: int
    dead_letters: int
    recent: dict[str, int] = field(default_factory=dict)
    last_run_at: datetime | None = None

    @property
    def failed(self) -> int:
        """How many of the latest runs failed."""
        return self.recent.get("failed", 0)


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Open dead letters of one rule, step and reason."""

    rule_id: int | None
    rule_name: str
    step: str
    reason: str
    count: int
    newest_id: int
    oldest_at: datetime
    newest_at: datetime


def rules_with_counts() -> list[RuleLine]:
    """The current tenant's rules in the order in which they run, each with its counts; a fixed number of queries."""
    tenant_id = current_tenant()
    rules = list(
        Rule.objects.filter(deleted_at=None).select_related("published", "draft", "owner").order_by("position", "id")
    )
    pauses = {one.subject_id: one for one in Pause.objects.filter(scope="rule", tenant_id=tenant_id, ended_at=None)}
    people = set(Membership.objects.filter(is_active=True, user__is_active=True).values_list("user_id", flat=True))
    live, dead, recent = _live(tenant_id), _dead(), _recent(tenant_id)
    return [
        RuleLine(
            rule=rule,
            version=rule.published.number if rule.published else None,
            definition=(rule.published or rule.draft).definition,
            unpublished=rule.published is None or rule.published.definition != rule.draft.definition,
            pause=pauses.get(rule.pk),
            owner=(rule.owner.get_full_name() or rule.owner.get_username()) if rule.owner else "",
            owner_gone=rule.owner_id not in people,
            live=live.get(rule.pk, 0),
            dead_letters=dead.get(rule.pk, 0),
            recent=recent.get(rule.pk, ({}, None))[0],
            last_run_at=recent.get(rule.pk, ({}, None))[1],
        )
        for rule in rules
    ]


def runs(
    *,
    rule_id: int | None = None,
    states: tuple[str, ...] = (),
    reason: str = "",
    model: str = "",
    record: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    batch: str = "",
) -> QuerySet[Run]:
    """The current tenant's runs that fit, unordered and uncut: the caller pages them by id. Empty filters fit all.

    Those of a `batch` are the runs that the import started; what was replayed of them is found by its rule or record.
    """
    given: dict[str, Any] = {
        "rule_id": rule_id,
        "state__in": states or None,
        "reason": reason or None,
        "model": model or None,
        "record": record,
        "created_at__gte": since,
        "created_at__lt": until,
    }
    if batch:
        # So that they are found by the events of the batch, and not looked for among all runs.
        given |= {"event__batch": batch, "event__tenant_id": current_tenant(), "origin": "event"}
        given |= {"forked_from_run__isnull": True}
    wanted = {name: value for name, value in given.items() if value is not None}
    return Run.objects.filter(**wanted).select_related("rule", "rule_version", "event")


def dead_letters() -> list[DeadGroup]:
    """The current tenant's open dead letters, grouped by rule, step and reason; the largest group first."""
    groups = (
        DeadLetter.objects.filter(resolved_at=None)
        .values("run__rule_id", "run__rule__name", "step__path", "reason")
        .annotate(count=Count("id"), newest_id=Max("id"), oldest=Min("opened_at"), newest=Max("opened_at"))
        .order_by("-count", "-newest_id")
    )
    return [
        DeadGroup(
            rule_id=one["run__rule_id"],
            rule_name=one["run__rule__name"] or "",
            step=one["step__path"] or "",
            reason=one["reason"],
            count=one["count"],
            newest_id=one["newest_id"],
            oldest_at=one["oldest"],
            newest_at=one["newest"],
        )
        for one in groups
    ]


def _live(tenant_id: int) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.rule_id, count(*) FROM (SELECT rule_id FROM automation_run WHERE tenant_id = %s"
            " AND state = ANY(%s) LIMIT %s) r GROUP BY r.rule_id",
            [tenant_id, list(LIVE_RUN), COUNTED],
        )
        return dict(cursor.fetchall())


def _dead() -> dict[int, int]:
    groups = DeadLetter.objects.filter(resolved_at=None, run__isnull=False).values("run__rule_id")
    return {one["run__rule_id"]: one["count"] for one in groups.annotate(count=Count("id"))}


def _recent(tenant_id: int) -> dict[int, tuple[dict[str, int], datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, n.state, count(*), max(n.created_at) FROM automation_rule u CROSS JOIN LATERAL"
            " (SELECT r.state, r.created_at FROM automation_run r WHERE r.tenant_id = u.tenant_id AND r.rule_id = u.id"
            " ORDER BY r.id DESC LIMIT %s) n WHERE u.tenant_id = %s AND u.deleted_at IS NULL GROUP BY u.id, n.state",
            [RECENT, tenant_id],
        )
        rows = cursor.fetchall()
    found: dict[int, tuple[dict[str, int], datetime]] = {}
    for rule_id, state, count, newest in rows:
        states, last = found.get(rule_id, ({}, newest))
        found[rule_id] = ({**states, state: count}, max(last, newest))
    return found
