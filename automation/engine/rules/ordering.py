"""Puts rules in the order in which they run."""

from django.db import transaction

from automation.engine.rules.finding import find, record
from automation.models import Limits, Rule
from automation.store import pauses
from automation.store import rules as rule_rows
from tenants.context import current_tenant


def move(rule_id: int, *, position: int) -> None:
    """Puts the rule at that place of the order (1 is first) and numbers all rules anew; beyond the end is the end."""
    tenant_id = current_tenant()
    with transaction.atomic():
        Limits.objects.select_for_update(no_key=True).get(tenant_id=tenant_id)  # one reordering at a time
        rule = find(rule_id, lock=True)
        present = dict(Rule.objects.filter(deleted_at=None).order_by("position", "id").values_list("id", "position"))
        order = [one for one in present if one != rule.pk]
        order.insert(max(position, 1) - 1, rule.pk)
        changed = {one: place for place, one in enumerate(order, start=1) if present[one] != place}
        if changed:
            rule_rows.set_positions(changed)
            record("move", rule, before={"position": rule.position}, after={"position": order.index(rule.pk) + 1})
            pauses.bump_rules(tenant_id)
