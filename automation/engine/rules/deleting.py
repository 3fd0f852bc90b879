"""Deletes rules softly, and brings them back."""

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.engine.operate.pause import end_rule_pause
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.rules.finding import find, record
from automation.models import Rule
from automation.store import pauses
from automation.store import rules as rule_rows
from tenants.context import current_tenant


def delete(rule_id: int) -> Cancelled:
    """Hides the rule at once, ends its pause and cancels what waits; restorable for 30 days. Not in a transaction."""
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        end_rule_pause(rule)
        if rule_rows.set_deleted(rule.pk):
            record("delete", rule, before={"name": rule.name, "on": rule.on})
            pauses.bump_rules(tenant_id)
    return cancel_all(rule_id=rule.pk, reason="delete")


def undelete(rule_id: int) -> None:
    """Brings a rule back that was deleted in the last 30 days, switched off; cancelled runs stay cancelled."""
    with transaction.atomic():
        rule = Rule.objects.select_for_update(no_key=True).get(pk=rule_id)
        if not rule_rows.set_restored(rule.pk):
            raise Refused(_("This rule isn't deleted, or was deleted more than 30 days ago."))
        record("undelete", rule)
