"""Finds rules that used to run and haven't for much longer than they ever paused before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Max

from automation.models import Rule
from automation.store import clock
from automation.store import rules as rule_rows
from tenants.context import current_tenant
from tenants.models import AuditEntry

LOOKED_AT = 30  # the latest runs of a rule, whose gaps are what is usual for it
FEWEST = 5  # with fewer runs nothing is usual
FACTOR = 5  # so many times the longest gap
LEAST = timedelta(days=3)
VERBS = ("publish", "switch_on", "resume")


@dataclass(frozen=True, slots=True)
class Silence:
    """A rule that went silent: its last run, how many days ago that was, and the longest gap in days before it."""

    rule_id: int
    last_run_at: datetime
    days: int
    usual_days: float


def silent(rules: Sequence[Rule]) -> list[Silence]:
    """Those of the current tenant's rules that are silent, in their order; two statements.

    A rule is silent when it hasn't run for three days and for five times the longest gap between its last 30 runs, and
    as long wasn't published or switched.
    """
    now = clock.now()
    found = rule_rows.run_times(current_tenant(), [rule.pk for rule in rules], limit=LOOKED_AT)
    changed = _changed(rules)
    silences = (
        _silence(rule.pk, found.get(rule.pk, []), changed_at=changed.get(f"rule:{rule.pk}"), now=now) for rule in rules
    )
    return [one for one in silences if one is not None]


def _changed(rules: Sequence[Rule]) -> dict[str, datetime]:
    """When each rule was last published or switched on, by its name in the audit."""
    entries = AuditEntry.objects.filter(target__in=[f"rule:{rule.pk}" for rule in rules], verb__in=VERBS)
    return dict(entries.order_by().values_list("target").annotate(last=Max("at")))


def _silence(rule_id: int, times: Sequence[datetime], *, changed_at: datetime | None, now: datetime) -> Silence | None:
    """`times` newest first; what a rule was before it was last changed says nothing of it."""
    if len(times) < FEWEST:
        return None
    longest = max(later - earlier for later, earlier in pairwise(times))
    if now - max(times[0], changed_at or times[0]) < max(LEAST, longest * FACTOR):
        return None
    return Silence(rule_id, times[0], (now - times[0]).days, round(longest / timedelta(days=1), 1))
