"""Finds rules and their drafts under the locks that verbs take, and notes in the audit what a verb did."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.models import Rule, RuleDraft
from automation.store import clock
from tenants import audit
from tenants.context import acting_for, current_actor


class Conflict(Refused):
    """Somebody else saved the draft: to `revision`, by `changed_by` (a name, "" when unknown), at `changed_at`."""

    def __init__(self, draft: RuleDraft) -> None:
        self.revision = draft.revision
        person = draft.changed_by
        self.changed_by = (person.get_full_name() or person.get_username()) if person else ""
        self.changed_at: datetime = draft.changed_at
        super().__init__(_("Someone else has saved this draft meanwhile: it is at revision %s.") % draft.revision)


def find(rule_id: int, *, lock: bool = False) -> Rule:
    """A rule of the current tenant that isn't deleted; `Rule.DoesNotExist` otherwise, whoever's it is."""
    rules = Rule.objects.select_for_update(no_key=True) if lock else Rule.objects.select_related("published")
    return rules.get(pk=rule_id, deleted_at=None)


def live_rules(tenant_id: int) -> list[Rule]:
    """The tenant's rules that are on, with their published versions, in the order in which they run."""
    with acting_for(tenant_id):
        rules = Rule.objects.filter(on=True, deleted_at=None, published__isnull=False)
        return list(rules.select_related("published").order_by("position", "id"))


def order() -> list[int]:
    """The ids of the current tenant's rules, in the order in which they run."""
    return list(Rule.objects.filter(deleted_at=None).order_by("position", "id").values_list("id", flat=True))


def person() -> int | None:
    """The user who acts; None for programs and the engine itself."""
    actor = current_actor()
    return actor.id if actor.kind == "person" else None


def locked_draft(rule_id: int, revision: int) -> RuleDraft:
    """The rule's draft under its lock; raises `Conflict` when it has moved on from that revision."""
    draft = RuleDraft.objects.select_for_update(no_key=True).get(rule_id=rule_id)
    if draft.revision != revision:
        raise Conflict(draft)
    return draft


def write_draft(draft: RuleDraft, definition: dict[str, Any]) -> None:
    """Gives a locked draft another definition, its next revision, and who did it when."""
    draft.definition, draft.revision = definition, draft.revision + 1
    draft.changed_by_id, draft.changed_at = person(), clock.now()
    draft.save(update_fields=["definition", "revision", "changed_by", "changed_at"])


def record(verb: str, rule: Rule, *, reason: str = "", before: Any = None, after: Any = None) -> None:
    """The audit entry of a verb on a rule, in the verb's own transaction."""
    audit.record(verb, f"rule:{rule.pk}", tenant_id=rule.tenant_id, reason=reason, before=before, after=after)
