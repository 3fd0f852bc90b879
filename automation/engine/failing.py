"""Switches a rule off whose runs fail one after the other, and tells its people."""

from collections.abc import Iterable

import structlog
from django.db import transaction

from automation import conf
from automation.core.breaker import FAILED_RUNS
from automation.engine import reached
from automation.engine.apart import rules_apart
from automation.engine.notices import rule_failing_notice, tell
from automation.models import Rule
from automation.store import clock, pauses, protection
from automation.store import rules as rule_rows
from tenants import audit
from tenants.context import NOBODY, acting_for

log = structlog.get_logger(__name__)
BREAKER = "breaker"


def judge(failed: Iterable[tuple[int, int]]) -> None:
    """Looks at rules (tenant id, rule id) of which a run has just failed, after the commit that says so.

    Whatever goes wrong here must not undo what was committed: the next failure looks again. A trial counts for nothing.
    """
    if rules_apart() is not None:
        return
    for tenant_id, rule_id in set(failed):
        try:
            if conf.load().breakers and protection.failed_in_a_row(tenant_id, rule_id) >= FAILED_RUNS:
                _switch_off(tenant_id, rule_id)
        except Exception:
            log.exception("alarm", what="rule breaker", tenant_id=tenant_id, rule_id=rule_id)


def _switch_off(tenant_id: int, rule_id: int) -> None:
    """Off, its waiting runs held; once, however many see it at the same time."""
    with transaction.atomic(), acting_for(tenant_id, NOBODY):
        rule = Rule.objects.select_for_update(no_key=True).filter(pk=rule_id, on=True, deleted_at=None).first()
        # Counted again: whoever published or switched it on meanwhile gave it ten failures more.
        if rule is None or protection.failed_in_a_row(tenant_id, rule_id) < FAILED_RUNS:
            return
        if not rule_rows.set_switch(rule_id, on=False, off_mode="hold"):
            return
        audit.record(
            "switch_off",
            f"rule:{rule_id}",
            tenant_id=tenant_id,
            reason=BREAKER,
            before={"on": True},
            after={"on": False, "waiting": "hold", "failed_runs": FAILED_RUNS},
        )
        log.error("alarm", what="rule off", tenant_id=tenant_id, rule_id=rule_id)
        reached.write(tenant_id, "failing_rule", rule=rule.name, rule_id=rule_id)
        notice = rule_failing_notice(tenant_id=tenant_id, rule_id=rule_id, rule_name=rule.name, now=clock.now())
        tell([notice])
        pauses.bump_rules(tenant_id)
