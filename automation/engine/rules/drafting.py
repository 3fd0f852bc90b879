"""Drafts rules: makes, saves, checks, names and restores them; nothing that runs changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from automation.core.errors import Problem
from automation.core.facts import unshown
from automation.engine import usage
from automation.engine.documents import storable
from automation.engine.operate import Refused
from automation.engine.references import References, people, problems_of
from automation.engine.rules.finding import find, locked_draft, person, record, write_draft
from automation.models import Limits, Rule, RuleDraft, RuleVersion
from automation.store import pauses, protection
from tenants.context import current_tenant

NAME_LENGTH = 120
EMPTY: dict[str, Any] = {"schema_version": 1, "trigger": None, "condition": None, "steps": []}


def create(name: str, *, owner_id: int | None = None, definition: dict[str, Any] | None = None) -> Rule:
    """A new rule at the end of the order, off, with a draft. The owner is the person who acts unless one is named.

    Raises `Refused` for a name that is empty, too long or can't be shown, and when the tenant has as many rules as its
    limits allow.
    """
    tenant_id = current_tenant()
    name, draft = _name(name), storable(EMPTY if definition is None else definition)
    with one_more(tenant_id):
        last = Rule.objects.filter(deleted_at=None).aggregate(last=Max("position"))["last"] or 0
        rule = Rule.objects.create(tenant_id=tenant_id, name=name, position=last + 1, owner_id=_owner(owner_id))
        RuleDraft.objects.create(tenant_id=tenant_id, rule=rule, definition=draft, changed_by_id=person())
        record("create", rule, after={"name": name, "position": rule.position})
    return rule


class Full(Refused):
    """The tenant has as many rules as its limits allow."""


@contextmanager
def one_more(tenant_id: int) -> Iterator[None]:
    """The transaction in which a rule comes: one at a time; `Full` where there are as many as the tenant may have.

    The one that comes may be the last: the next round of the chores looks whether people are to be told.
    """
    try:
        with transaction.atomic():
            _has_room(tenant_id)
            protection.look_soon(tenant_id)
            yield
    except Full:
        usage.refused(tenant_id, "rules")
        raise


def _has_room(tenant_id: int) -> None:
    limits = Limits.objects.select_for_update(no_key=True).get(tenant_id=tenant_id)
    if Rule.objects.filter(deleted_at=None).count() >= limits.rules:
        raise Full(_("The limit “rules” is reached: this tenant may have %s of them.") % limits.rules)


def save_draft(rule_id: int, definition: dict[str, Any], *, base_revision: int) -> RuleDraft:
    """Keeps any JSON object as the rule's draft, valid or not, and answers it with its new revision.

    Raises `Conflict` when the draft has moved on from `base_revision`, `Refused` for what isn't a JSON object, is too
    large, too deeply nested, or holds a character that can't be stored.
    """
    kept = storable(definition)
    with transaction.atomic():
        find(rule_id)
        draft = locked_draft(rule_id, base_revision)
        write_draft(draft, kept)
    return draft


def check(definition: Any) -> list[Problem]:
    """Everything that is wrong with a definition for the current tenant, each with a JSON pointer."""
    return problems_of(definition, References(current_tenant()))


def rename(rule_id: int, name: str) -> None:
    """Gives the rule another name; `Refused` for one that is empty, too long or can't be shown."""
    name = _name(name)
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        if rule.name != name:
            Rule.objects.filter(pk=rule.pk).update(name=name)
            record("rename", rule, before={"name": rule.name}, after={"name": name})
            pauses.bump_rules(current_tenant())


def restore(rule_id: int, number: int) -> RuleDraft:
    """Makes the definition of a version the draft; nothing that runs changes. `RuleVersion.DoesNotExist` for none."""
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        version = RuleVersion.objects.get(rule=rule, number=number)
        draft = RuleDraft.objects.select_for_update(no_key=True).get(rule=rule)
        write_draft(draft, version.definition)
        record("restore", rule, after={"draft_of": number, "revision": draft.revision})
    return draft


def _name(name: str) -> str:
    text = " ".join(name.split())
    if (odd := unshown(text)) is not None:
        raise Refused(_("A name can't hold %s, a character that can't be shown.") % odd)
    if not text:
        raise Refused(_("A rule needs a name."))
    if len(text) > NAME_LENGTH:
        raise Refused(_("A name has at most %s characters.") % NAME_LENGTH)
    return text


def _owner(owner_id: int | None) -> int | None:
    if owner_id is None:
        return person()
    if not people().filter(user_id=owner_id).exists():
        raise Refused(_("The owner of a rule is one of the tenant's people."))
    return owner_id
