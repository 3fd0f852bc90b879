"""Says which versions of rules runs are still on: older ones drain, and their number says when they have."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection
from django.db.models import Count

from automation.core.states import STEP_STATES, TERMINAL_STEP, UNDER_WAY
from automation.models import DeadLetter, RuleVersion
from tenants.context import current_tenant

COUNTED = 10_000
OPEN_STEP = [state for state in STEP_STATES if state not in TERMINAL_STEP]


@dataclass(frozen=True, slots=True)
class VersionUse:
    """A version that runs are on. Of the tenant's runs under way `COUNTED` are looked at, the oldest first.

    `at` says where they are: {path of the step: runs}. `dead_letters` are open ones, which a retry would take up on
    this version. `live`: new events follow it.
    """

    rule_id: int
    rule_name: str
    version_id: int
    number: int
    live: bool
    runs: int
    oldest_at: datetime | None
    dead_letters: int
    at: dict[str, int] = field(default_factory=dict)


def in_use(rule_id: int | None = None) -> list[VersionUse]:
    """The versions of the current tenant's rules, or of one of them, that runs or open dead letters are on.

    Deleted rules are among them until their runs have ended. Sorted by rule and number.
    """
    tenant_id = current_tenant()
    runs, at, dead = _runs(tenant_id, rule_id), _at(tenant_id, rule_id), _dead(rule_id)
    return sorted(
        (
            VersionUse(
                rule_id=version.rule_id,
                rule_name=version.rule.name,
                version_id=version.pk,
                number=version.number,
                live=version.rule.published_id == version.pk and version.rule.deleted_at is None,
                runs=runs.get(version.pk, (0, None))[0],
                oldest_at=runs.get(version.pk, (0, None))[1],
                dead_letters=dead.get(version.pk, 0),
                at=at.get(version.pk, {}),
            )
            for version in _versions({*runs, *dead})
        ),
        key=lambda use: (use.rule_id, use.number),
    )


def older_in_use(rule_id: int | None = None) -> list[VersionUse]:
    """The versions in use that no new event follows any more."""
    return [use for use in in_use(rule_id) if not use.live]


def _versions(version_ids: Iterable[int]) -> Iterable[RuleVersion]:
    return RuleVersion.objects.filter(pk__in=version_ids).select_related("rule").defer("definition")


def _runs(tenant_id: int, rule_id: int | None) -> dict[int, tuple[int, datetime]]:
    with connection.cursor() as cursor:
        # The oldest first, so that a tenant with many runs doesn't hide those that have waited longest.
        cursor.execute(
            "SELECT r.rule_version_id, count(*), min(r.created_at) FROM"
            " (SELECT rule_version_id, created_at FROM automation_run WHERE tenant_id = %s AND state = ANY(%s)"
            " AND (%s::bigint IS NULL OR rule_id = %s) ORDER BY id LIMIT %s) r GROUP BY r.rule_version_id",
            [tenant_id, list(UNDER_WAY), rule_id, rule_id, COUNTED],
        )
        return {version_id: (count, oldest) for version_id, count, oldest in cursor.fetchall()}


def _at(tenant_id: int, rule_id: int | None) -> dict[int, dict[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.rule_version_id, s.path, count(*) FROM"
            " (SELECT id, rule_version_id FROM automation_run WHERE tenant_id = %s AND state = ANY(%s)"
            " AND (%s::bigint IS NULL OR rule_id = %s) ORDER BY id LIMIT %s) r"
            " JOIN automation_stepexecution s ON s.run_id = r.id AND s.state = ANY(%s) GROUP BY 1, 2 ORDER BY 1, 2",
            [tenant_id, list(UNDER_WAY), rule_id, rule_id, COUNTED, OPEN_STEP],
        )
        found: dict[int, dict[str, int]] = {}
        for version_id, path, count in cursor.fetchall():
            found.setdefault(version_id, {})[path] = count
    return found


def _dead(rule_id: int | None) -> dict[int, int]:
    letters = DeadLetter.objects.filter(resolved_at=None, run__isnull=False)
    letters = letters if rule_id is None else letters.filter(run__rule_id=rule_id)
    groups = letters.values("run__rule_version_id").annotate(count=Count("id")).order_by()
    return {one["run__rule_version_id"]: one["count"] for one in groups}
