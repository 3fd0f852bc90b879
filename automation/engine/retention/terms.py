"""For how long a tenant's traces, runs and events are kept."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from automation.store import retention
from automation.store.retention_rounds import TermsRow
from automation.store.rules import RESTORABLE_DAYS

RESTORABLE = timedelta(days=30)  # a closed tenant can be had back for so long
FAILURES_KEPT = timedelta(days=30)  # what the task queue notes about tasks of its own that failed
PAUSES_KEPT = timedelta(days=400)
PAGE = 1000  # keys that one statement looks at


@dataclass(frozen=True, slots=True)
class Terms:
    """The moments and ids before which a tenant's rows go, as of one moment of the database's clock.

    Details of runs and whole events without a run go before `details_before`, or below the event `events_below`,
    whichever is met first; all that is left of runs goes before `headers_before`.
    """

    now: datetime
    details_before: datetime
    headers_before: datetime
    rules_before: datetime
    events_below: int

    @classmethod
    def of(cls, tenant_id: int, row: TermsRow) -> "Terms":
        """The terms that the tenant's limits come to."""
        return cls(
            now=row.now,
            details_before=row.now - timedelta(days=row.details_days),
            headers_before=row.now - timedelta(days=row.header_days),
            rules_before=row.now - timedelta(days=RESTORABLE_DAYS),
            events_below=retention.first_event_kept(tenant_id, most=row.events_kept),
        )
