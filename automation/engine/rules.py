"""What people do to rules: draft, publish, switch, order, delete; each verb one transaction with its audit entry."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from automation.core.errors import DefinitionError, Problem
from automation.core.facts import clean
from automation.engine.documents import fingerprint, storable, valid
from automation.engine.operate import Refused
from automation.engine.operate.pause import end_rule_pause
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.references import References, problems_of
from automation.models import Limits, Rule, RuleDraft, RuleVersion
from automation.store import clock, pauses, timers
from automation.store import rules as rule_rows
from tenants import audit
from tenants.context import acting_for, current_actor, current_tenant
from tenants.models import Membership

NAME_LENGTH, NOTE_LENGTH = 120, 400
WAITING = ("hold", "finish", "cancel")
EMPTY: dict[str, Any] = {"schema_version": 1, "trigger": None, "condition": None, "steps": []}


class Conflict(Refused):
    """Somebody else saved the draft: to `revision`, by `changed_by` (a name, "" when unknown), at `changed_at`."""

    def __init__(self, draft: RuleDraft) -> None:
        self.revision = draft.revision
        person = draft.changed_by
        self.changed_by = (person.get_full_name() or person.get_username()) if person else ""
        self.changed_at: datetime = draft.changed_at
        super().__init__(_("Someone else has saved this draft meanwhile: it is at revision %s.") % draft.revision)


class NothingNew(Refused):
    """The draft says what the published version says already."""


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


def create(name: str, *, owner_id: int | None = None, definition: dict[str, Any] | None = None) -> Rule:
    """A new rule at the end of the order, off, with a draft. The owner is the person who acts unless one is named.

    Raises `Refused` for a name that is empty or too long, and when the tenant has as many rules as its limits allow.
    """
    tenant_id = current_tenant()
    name, draft = _name(name), storable(EMPTY if definition is None else definition)
    with transaction.atomic():
        limits = Limits.objects.select_for_update(no_key=True).get(tenant_id=tenant_id)
        present = Rule.objects.filter(deleted_at=None)
        if present.count() >= limits.rules:
            raise Refused(_("The limit “rules” is reached: this tenant may have %s of them.") % limits.rules)
        last = present.aggregate(last=Max("position"))["last"] or 0
        rule = Rule.objects.create(tenant_id=tenant_id, name=name, position=last + 1, owner_id=_owner(owner_id))
        RuleDraft.objects.create(tenant_id=tenant_id, rule=rule, definition=draft, changed_by_id=_person())
        _audit("create", rule, after={"name": name, "position": rule.position})
    return rule


def save_draft(rule_id: int, definition: dict[str, Any], *, base_revision: int) -> RuleDraft:
    """Keeps any JSON object as the rule's draft, valid or not, and answers it with its new revision.

    Raises `Conflict` when the draft has moved on from `base_revision`, `Refused` for what isn't a JSON object, is too
    large, too deeply nested, or holds a character that can't be stored.
    """
    kept = storable(definition)
    with transaction.atomic():
        find(rule_id)
        draft = _locked_draft(rule_id, base_revision)
        _write_draft(draft, kept)
    return draft


def check(definition: Any) -> list[Problem]:
    """Everything that is wrong with a definition for the current tenant, each with a JSON pointer."""
    return problems_of(definition, References(current_tenant()))


def publish(rule_id: int, *, revision: int, note: str = "") -> RuleVersion:
    """Makes the draft of that revision the live version: new events follow it, runs under way keep theirs.

    Raises `Conflict` when the draft has moved on, `DefinitionError` with every problem, `NothingNew` when it says what
    the live version says.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        draft = _locked_draft(rule_id, revision)
        definition = valid(draft.definition, References(tenant_id))
        sha256 = fingerprint(definition)
        live = RuleVersion.objects.filter(pk=rule.published_id).first() if rule.published_id else None
        if live is not None and live.sha256 == sha256:
            raise NothingNew(_("Nothing has changed since version %s.") % live.number)
        last = RuleVersion.objects.filter(rule=rule).aggregate(last=Max("number"))["last"] or 0
        version = RuleVersion.objects.create(
            tenant_id=tenant_id,
            rule=rule,
            number=last + 1,
            definition=definition,
            sha256=sha256,
            schema_version=definition.get("schema_version", 1),
            published_by_id=_person(),
            note=note[:NOTE_LENGTH],
        )
        if draft.definition != definition:
            _write_draft(draft, definition)
        rule_rows.set_published(rule.pk, version.pk)
        _audit(
            "publish",
            rule,
            reason=note,
            before={"version": live.number if live else None},
            after={"version": version.number, "on": rule.on},
        )
        pauses.bump_rules(tenant_id)
    return version


def switch_on(rule_id: int) -> None:
    """Lets a published rule run; a pause of it ends, and the runs that were held go on. Twice does nothing more.

    Raises `Refused` for a rule that was never published, `DefinitionError` when something that it names is gone.
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
        resumed = end_rule_pause(rule)
        switched = rule_rows.set_switch(rule.pk, on=True, off_mode="hold")
        if switched:
            _audit("switch_on", rule, before={"on": rule.on}, after={"on": True, "version": version.number})
        if switched or resumed:
            timers.hurry(tenant_id, rule_rows.held_runs(tenant_id, rule.pk))
            pauses.bump_rules(tenant_id)


def switch_off(rule_id: int, *, waiting: str = "hold") -> Cancelled:
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
        if rule_rows.set_switch(rule.pk, on=False, off_mode=off_mode):
            _audit("switch_off", rule, before={"on": rule.on}, after={"on": False, "waiting": waiting})
            if waiting == "finish":
                timers.hurry(tenant_id, rule_rows.held_runs(tenant_id, rule.pk))
            pauses.bump_rules(tenant_id)
    return cancel_all(rule_id=rule.pk, reason="switch_off") if waiting == "cancel" else Cancelled()


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
            _audit("move", rule, before={"position": rule.position}, after={"position": order.index(rule.pk) + 1})
            pauses.bump_rules(tenant_id)


def rename(rule_id: int, name: str) -> None:
    """Gives the rule another name; `Refused` for one that is empty or too long."""
    name = _name(name)
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        if rule.name != name:
            Rule.objects.filter(pk=rule.pk).update(name=name)
            _audit("rename", rule, before={"name": rule.name}, after={"name": name})
            pauses.bump_rules(current_tenant())


def restore(rule_id: int, number: int) -> RuleDraft:
    """Makes the definition of a version the draft; nothing that runs changes. `RuleVersion.DoesNotExist` for none."""
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        version = RuleVersion.objects.get(rule=rule, number=number)
        draft = RuleDraft.objects.select_for_update(no_key=True).get(rule=rule)
        _write_draft(draft, version.definition)
        _audit("restore", rule, after={"draft_of": number, "revision": draft.revision})
    return draft


def delete(rule_id: int) -> Cancelled:
    """Hides the rule at once, ends its pause and cancels what waits; restorable for 30 days. Not in a transaction."""
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        end_rule_pause(rule)
        if rule_rows.set_deleted(rule.pk):
            _audit("delete", rule, before={"name": rule.name, "on": rule.on})
            pauses.bump_rules(tenant_id)
    return cancel_all(rule_id=rule.pk, reason="delete")


def undelete(rule_id: int) -> None:
    """Brings a rule back that was deleted in the last 30 days, switched off; cancelled runs stay cancelled."""
    with transaction.atomic():
        rule = Rule.objects.select_for_update(no_key=True).get(pk=rule_id)
        if not rule_rows.set_restored(rule.pk):
            raise Refused(_("This rule isn't deleted, or was deleted more than 30 days ago."))
        _audit("undelete", rule)


def _name(name: str) -> str:
    text = " ".join(clean(name).split())
    if not text:
        raise Refused(_("A rule needs a name."))
    if len(text) > NAME_LENGTH:
        raise Refused(_("A name has at most %s characters.") % NAME_LENGTH)
    return text


def _owner(owner_id: int | None) -> int | None:
    if owner_id is None:
        return _person()
    if not Membership.objects.filter(user_id=owner_id, is_active=True).exists():
        raise Refused(_("The owner of a rule is one of the tenant's people."))
    return owner_id


def _person() -> int | None:
    actor = current_actor()
    return actor.id if actor.kind == "person" else None


def _locked_draft(rule_id: int, revision: int) -> RuleDraft:
    draft = RuleDraft.objects.select_for_update(no_key=True).get(rule_id=rule_id)
    if draft.revision != revision:
        raise Conflict(draft)
    return draft


def _write_draft(draft: RuleDraft, definition: dict[str, Any]) -> None:
    draft.definition, draft.revision = definition, draft.revision + 1
    draft.changed_by_id, draft.changed_at = _person(), clock.now()
    draft.save(update_fields=["definition", "revision", "changed_by", "changed_at"])


def _audit(verb: str, rule: Rule, *, reason: str = "", before: Any = None, after: Any = None) -> None:
    audit.record(verb, f"rule:{rule.pk}", tenant_id=rule.tenant_id, reason=reason, before=before, after=after)
