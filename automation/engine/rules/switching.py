"""Switches rules on and off."""

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.errors import DefinitionError
from automation.engine.operate import Refused
from automation.engine.operate.pause import dripping, end_rule_pause, gather_put_off, let_out_some
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.rules.drafting import check
from automation.engine.rules.finding import find, record
from automation.models import RuleVersion
from automation.store import pauses
from automation.store import rules as rule_rows
from tenants.context import current_tenant

WAITING = ("hold", "finish", "cancel")


def switch_on(rule_id: int, reason: str = "") -> None:
    """Lets a published rule run; a pause of it ends, and the runs that were held go on. Twice does nothing more.

    Quick however many they are: the workers let them out in portions. Raises `Refused` for a rule that was never
    published, `DefinitionError` when something that it names is gone.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        if rule.published_id is None:
            raise Refused(_("Publish the rule before switching it on."))
        version = RuleVersion.objects.get(pk=rule.published_id)
        problems = check(version.definition)
        if problems:
            raise DefinitionError(problems)
        gather_put_off(rule)
        resumed = end_rule_pause(rule)
        switched = rule_rows.set_switch(rule.pk, on=True, off_mode="hold")
        if switched:
            after = {"on": True, "version": version.number}
            record("switch_on", rule, reason=reason, before={"on": rule.on}, after=after)
        if switched or resumed:
            pauses.bump_rules(tenant_id)
    let_out_some(dripping("rule", rule_id))


def switch_off(rule_id: int, *, waiting: str = "hold", reason: str = "") -> Cancelled:
    """Keeps new events from starting the rule. Its waiting runs are held, finish, or are cancelled, as asked.

    Answers what was cancelled. Twice does nothing more. "cancel" works in batches of a transaction each: call it
    outside a transaction. ValueError for another word.
    """
    if waiting not in WAITING:
        raise ValueError(f"waiting runs can't be told to {waiting}")
    tenant_id = current_tenant()
    off_mode = "finish" if waiting == "finish" else "hold"
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        if waiting == "finish":
            gather_put_off(rule)
        if rule_rows.set_switch(rule.pk, on=False, off_mode=off_mode):
            after = {"on": False, "waiting": waiting}
            record("switch_off", rule, reason=reason, before={"on": rule.on}, after=after)
            pauses.bump_rules(tenant_id)
    let_out_some(dripping("rule", rule_id))
    return cancel_all(rule_id=rule.pk, reason=reason or "switch_off") if waiting == "cancel" else Cancelled()
