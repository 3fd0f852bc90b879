"""One round of retention for one tenant, in batches that are committed one by one."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from functools import partial

from django.db import transaction

from automation.catalog.pruning import pruned
from automation.core.states import RUN_STATES, TERMINAL_RUN
from automation.engine.retention.portions import Portion
from automation.engine.retention.purge import purge
from automation.engine.retention.terms import PAGE, RESTORABLE, Terms
from automation.store import retention
from automation.store import retention_rounds as rounds

EVENT_IDS = 20 * PAGE  # ids that are read ahead: finding them costs more than keeping them
RULES_AT_ONCE = 20
AGED = {
    "notices": "automation_notice",
    "served batches": "automation_servedbatch",
    "bulk jobs": "automation_bulkjob",
}
ENDED = tuple(state for state in RUN_STATES if state in TERMINAL_RUN)
NOT_ENDED = tuple(state for state in RUN_STATES if state not in TERMINAL_RUN)


def round_of(tenant_id: int, *, purge_now: bool = False) -> Iterator[Portion]:
    """Takes a tenant through retention; whoever stops asking stops it, and the next round goes on.

    Call it outside a transaction. A tenant that was closed long enough ago is purged instead, with `purge_now` any
    closed one.
    """
    row = rounds.begin(tenant_id)
    if row.purged_at is not None:
        return
    removed: Counter[str] = Counter()
    if row.closed_at is not None and (purge_now or row.closed_at < row.now - RESTORABLE):
        batches = purge(tenant_id)
    else:
        batches = _Round(tenant_id, Terms.of(tenant_id, row), row.runs_from, row.events_from).batches()
    for batch in batches:
        removed.update(batch.removed)
        if batch.removed:
            rounds.note(tenant_id, removed)
        yield batch


def rehearsal_of(tenant_id: int) -> Iterator[Portion]:
    """What a round would do now: each batch is done and taken back at once, so that nothing stays locked for long.

    What goes only once something else has gone, such as a deleted rule after the last of its runs, isn't in it. Of a
    closed tenant that would be purged there is one portion, "purge", which counts nothing.
    """
    batches = _rehearsed(tenant_id)
    while True:
        with transaction.atomic():
            found = next(batches, None)
            transaction.set_rollback(True)
        if found is None:
            return
        yield found


def _rehearsed(tenant_id: int) -> Iterator[Portion]:
    row = rounds.begin(tenant_id)
    if row.purged_at is not None:
        return
    if row.closed_at is not None and row.closed_at < row.now - RESTORABLE:
        yield Portion("purge", 0)
        return
    yield from _Round(tenant_id, Terms.of(tenant_id, row), row.runs_from, row.events_from, rehearsed=True).batches()


class _Round:
    """Details first, then events that started nothing, then what is left of old runs.

    `rehearsed`: what a batch removes is there again after it.
    """

    def __init__(
        self, tenant_id: int, terms: Terms, runs_from: int, events_from: int, *, rehearsed: bool = False
    ) -> None:
        self.tenant_id, self.terms, self.rehearsed = tenant_id, terms, rehearsed
        self.runs_from, self.events_from = runs_from, events_from

    def batches(self) -> Iterator[Portion]:
        # Read before the walk: a run that ends while it goes on is looked at by the next one.
        live = retention.first_live_run(self.tenant_id, NOT_ENDED)
        stays = [live]
        for state in ENDED:
            first = yield from self._details(state)
            stays.append(first)
        yield from self._events()
        for state in ENDED:
            yield from self._headers(state)
        yield from self._rest()
        known = [run_id for run_id in stays if run_id is not None]
        rounds.finish(self.tenant_id, runs_from=min(known, default=None), events_from=self.events_from)

    def _details(self, state: str) -> Generator[Portion, None, int | None]:
        """Answers, at its end, the first run that keeps its details."""
        before, after, first = self.terms.details_before, self.runs_from - 1, None
        while page := self._page(state, after, before):
            due = [run.id for run in page if run.due and not run.stripped]
            done, events = retention.strip_runs(due) if due else ([], 0)
            if first is None:
                gone = set(done)
                first = next((run.id for run in page if not run.stripped and run.id not in gone), None)
            after = page[-1].id
            yield Portion.of("runs", len(page), details=len(done), facts=events)
            if not any(run.old for run in page):
                break
        return first

    def _headers(self, state: str) -> Iterator[Portion]:
        before, after = self.terms.headers_before, 0
        while page := self._page(state, after, before, below=0):
            due = [run.id for run in page if run.due]
            done, events = retention.drop_runs(due) if due else ([], 0)
            after = page[-1].id
            yield Portion.of("runs", len(page), runs=len(done), events=events)
            if not any(run.old for run in page):
                break

    def _page(self, state: str, after: int, before: datetime, *, below: int | None = None) -> list[retention.RunKey]:
        events_below = self.terms.events_below if below is None else below
        return retention.run_page(
            self.tenant_id, state, after=after, before=before, events_below=events_below, limit=PAGE
        )

    def _events(self) -> Iterator[Portion]:
        """Events that started no run go whole; those with runs are their runs' affair."""
        before, events_below = self.terms.details_before, self.terms.events_below
        below = max(events_below, retention.first_event_since(before))
        after, first = self.events_from - 1, None
        while ids := retention.event_page(self.tenant_id, after=after, below=below, limit=EVENT_IDS):
            for start in range(0, len(ids), PAGE):
                page = ids[start : start + PAGE]
                gone, stays = retention.drop_events(page, before=before, below=events_below)
                first = stays if first is None else first
                yield Portion.of("events", len(page), events=gone)
            after = ids[-1]
        self.events_from = max(below, self.events_from) if first is None else first

    def _rest(self) -> Iterator[Portion]:
        headers, rules = self.terms.headers_before, self.terms.rules_before
        drops: dict[str, Callable[[], int]] = {
            what: partial(retention.drop_older, table, self.tenant_id, before=headers, limit=PAGE)
            for what, table in AGED.items()
        }
        drops["rules"] = partial(retention.drop_rules, self.tenant_id, before=rules, limit=RULES_AT_ONCE)
        drops |= {what: partial(drop, self.tenant_id, limit=PAGE) for what, drop in pruned.items()}
        for what, drop in drops.items():
            if self.rehearsed:
                gone = sum(iter(drop, 0))
                yield Portion.of(what, gone, **{what: gone})
                continue
            while gone := drop():
                yield Portion(what, gone, {what: gone})
