"""Deletes rules softly, and brings them back for a while."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.states import LIVE_RUN
from automation.engine.operate import Refused
from automation.engine.operate.pause import end_rule_pause
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.rules.drafting import one_more
from automation.engine.rules.finding import find, record
from automation.models import DeadLetter, Rule, Run
from automation.store import clock, pauses
from automation.store import rules as rule_rows
from tenants.context import current_actor, current_tenant

RESTORABLE = timedelta(days=rule_rows.RESTORABLE_DAYS)
COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Goes:
    """What a deletion ends, counted to `COUNTED`: runs under way are cancelled, open dead letters are closed."""

    rule: Rule
    runs: int
    dead_letters: int


def what_goes(rule_id: int) -> Goes:
    """What deleting the rule would end; two counts that stop early. `Rule.DoesNotExist` where there is no such rule."""
    rule = find(rule_id)
    runs = Run.objects.filter(rule=rule, state__in=LIVE_RUN)
    letters = DeadLetter.objects.filter(resolved_at=None, run__rule=rule)
    return Goes(rule, *(rows.order_by().values("pk")[:COUNTED].count() for rows in (runs, letters)))


def delete(rule_id: int, reason: str = "") -> Cancelled:
    """Hides the rule at once, ends its pause and cancels what waits; restorable for 30 days. Not in a transaction.

    Its open dead letters are closed. What it did stays in the history until its time is over.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        end_rule_pause(rule)
        if rule_rows.set_deleted(rule.pk):
            record("delete", rule, reason=reason, before={"name": rule.name, "on": rule.on})
            pauses.bump_rules(tenant_id)
    done = cancel_all(rule_id=rule.pk, reason="delete")
    # Nobody can retry them any more, and what is open is kept for ever.
    rule_rows.close_letters(tenant_id, rule.pk, actor=current_actor().name)
    return done


def deleted() -> list[Rule]:
    """The current tenant's rules that were deleted and can still be brought back, the latest first."""
    return list(Rule.objects.filter(deleted_at__gt=clock.now() - RESTORABLE).order_by("-deleted_at", "-id"))


def restorable_until(rule: Rule) -> datetime | None:
    """Until when a deleted rule can be brought back; None for one that isn't deleted."""
    return rule.deleted_at + RESTORABLE if rule.deleted_at else None


def undelete(rule_id: int, reason: str = "") -> None:
    """Brings a rule back that was deleted in the last 30 days, switched off; what was cancelled stays cancelled.

    Not in a transaction. Raises `Rule.DoesNotExist`, and `Refused` for a rule that isn't deleted or was so too long
    ago, and where the tenant has as many rules as its limits allow.
    """
    tenant_id = current_tenant()
    if Rule.objects.get(pk=rule_id).deleted_at is None:
        raise Refused(_too_late())
    # A run that a matcher began while the rule was being deleted must not come back with it.
    cancel_all(rule_id=rule_id, reason="delete")
    with one_more(tenant_id):
        rule = Rule.objects.select_for_update(no_key=True).get(pk=rule_id)
        if not rule_rows.set_restored(rule.pk):
            raise Refused(_too_late())
        record("undelete", rule, reason=reason)
        pauses.bump_rules(tenant_id)


def _too_late() -> str:
    return _("This rule isn't deleted, or was deleted more than 30 days ago.")
