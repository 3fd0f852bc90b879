"""Compares a draft with the live version over stored events, as a job in slices; it judges, and acts on nothing."""

import time
from datetime import timedelta
from typing import Any

import structlog
from django.db import Error, transaction
from django.utils.translation import gettext as _

from automation import failpoints
from automation.engine.backtest_events import StoredEvents
from automation.engine.backtest_judging import Judging, nothing_yet, versions
from automation.engine.documents import valid
from automation.engine.operate import Refused
from automation.engine.references import References
from automation.models import Backtest, Rule, RuleDraft
from automation.store import backtests, clock
from automation.store.backtests import BacktestRow, Span
from tenants.context import acting_for, current_actor, current_tenant

log = structlog.get_logger(__name__)
DAYS, MOST_DAYS = 7, 400
EVENTS, MOST_EVENTS = 5000, 100_000
AT_ONCE = 2  # unfinished backtests of a tenant
KEPT = 20  # ended ones of a rule
ERROR_LENGTH = 500


def start(rule_id: int, *, definition: Any = None, days: int = DAYS, most: int = EVENTS) -> Backtest:
    """Asks for a comparison of the rule's draft (or a definition) with its live version; workers do it.

    Over the newest `most` events of the last `days`. Raises `DefinitionError` for a definition that can't be published,
    `Refused` beyond the limits, and where two comparisons of the tenant are unfinished; `Rule.DoesNotExist`.
    """
    tenant_id = current_tenant()
    if not (0 < days <= MOST_DAYS and 0 < most <= MOST_EVENTS):
        names = {"days": MOST_DAYS, "events": MOST_EVENTS}
        raise Refused(_("A backtest goes back %(days)s days and over %(events)s events at most.") % names)
    with transaction.atomic():
        rule = Rule.objects.select_for_update(no_key=True).get(pk=rule_id, deleted_at=None)
        draft = RuleDraft.objects.get(rule=rule)
        document = valid(draft.definition if definition is None else definition, References(tenant_id))
        if Backtest.objects.filter(state__in=("queued", "running")).count() >= AT_ONCE:
            raise Refused(_("Two backtests are running already: try again when one has ended, or cancel it."))
        backtests.forget_old(tenant_id, rule.pk, keep=KEPT - 1)
        return Backtest.objects.create(
            tenant_id=tenant_id,
            rule=rule,
            definition=document,
            revision=draft.revision if definition is None else None,
            against_id=rule.published_id,
            since=clock.now() - timedelta(days=days),
            most=most,
            result=nothing_yet(),
            asked_by=current_actor().name[:200],
        )


def cancel(backtest_id: int) -> bool:
    """Stops it at its next slice; what was found so far stays. False where there was nothing left to stop."""
    return backtests.request_cancel(current_tenant(), backtest_id)


def work(seconds: float, *, backtest_id: int | None = None) -> bool:
    """Works for so long on that backtest, or on the oldest of all tenants; False where there is none to work on.

    One transaction: who is killed leaves it as it was, and another goes on.
    """
    ends_at = time.monotonic() + seconds
    with transaction.atomic():
        row = backtests.take(backtest_id)
        if row is None:
            return False
        if row.cancelled:
            _save(row, "cancelled", row.place, judged=row.judged, result=row.result)
            return True
        try:
            with transaction.atomic(), acting_for(row.tenant_id):
                _slice(row, ends_at)
        except Error:
            raise
        except Exception as error:
            # A fault of ours with this one: it says so, and the others go on.
            log.exception("alarm", what="backtest", backtest_id=row.id)
            text = f"{type(error).__name__}: {error}"[:ERROR_LENGTH]
            _save(row, "failed", row.place, judged=row.judged, result=row.result, error=text)
    return True


def _slice(row: BacktestRow, ends_at: float) -> None:
    draft, live = versions(row.tenant_id, Rule.objects.get(pk=row.rule_id), row.definition, row.against_id)
    triggers = [one.rules[0].trigger for one in (draft, live) if one is not None]
    listened = [one for one in triggers if one is not None]
    models, kinds = sorted({one.model for one in listened}), sorted({one.kind for one in listened})
    if row.state == "queued":
        within = backtests.span(row.tenant_id, models=models, kinds=kinds, since=row.since, most=row.most)
        row = row._replace(total=within.events, place={"within": list(within), "behind": None})
    stored = StoredEvents(row.tenant_id, models, kinds, row.since, Span(*row.place["within"]), row.place["behind"])
    judging, judged = Judging(draft, live, row.result), row.judged
    for batch in stored.batches():
        judging.take(batch)
        judged += len(batch)
        if time.monotonic() > ends_at:
            break
    place = {"within": row.place["within"], "behind": stored.place}
    _save(row, "done" if stored.ended else "running", place, judged=judged, result=judging.result)
    failpoints.hit("backtest.judged")


def _save(row: BacktestRow, state: str, place: Any, *, judged: int, result: dict[str, Any], error: str = "") -> None:
    # Fewer than were counted, where retention was faster; more there can't be.
    total = judged if state == "done" else max(row.total, judged)
    backtests.save(row.id, state=state, place=place, total=total, judged=judged, result=result, error=error)
