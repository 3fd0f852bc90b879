"""Gives rules to other people, and tells of those whose owner has left: they go on, and nobody looks after them."""

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine import notices
from automation.engine.operate import Refused
from automation.engine.references import people
from automation.engine.rules.finding import find, record
from automation.models import Notice, Rule


def give(rule_id: int, *, owner_id: int, reason: str = "") -> None:
    """Makes one of the tenant's people (a user's id) the owner of a rule; twice does nothing more.

    Raises `Rule.DoesNotExist`, and `Refused` for somebody who isn't one of them, or has left.
    """
    if not people().filter(user_id=owner_id).exists():
        raise Refused(_("The owner of a rule is one of the tenant's people."))
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        if rule.owner_id != owner_id:
            Rule.objects.filter(pk=rule.pk).update(owner_id=owner_id)
            record("give", rule, reason=reason, before={"owner": rule.owner_id}, after={"owner": owner_id})


def owned_by(owner_id: int) -> list[Rule]:
    """The current tenant's rules that a user owns, in the order in which they run."""
    return list(Rule.objects.filter(owner_id=owner_id, deleted_at=None).order_by("position", "id"))


def owner_gone() -> list[Rule]:
    """The current tenant's rules that are on and whose owner has left the tenant or can't log in any more."""
    there = people().values("user_id")
    alone = Rule.objects.filter(on=True, deleted_at=None, owner__isnull=False).exclude(owner__in=there)
    return list(alone.select_related("owner").order_by("position", "id"))


def tell_owners_gone() -> list[Rule]:
    """Tells the current tenant's admins of each owner who has left rules behind that are on, once and of all of them.

    They go on: their runs act as the tenant's automation, not as a person. Answers the rules, told now or before.
    """
    _forget_who_came_back()
    owners: dict[int | None, list[Rule]] = {}
    alone = owner_gone()
    for rule in alone:
        owners.setdefault(rule.owner_id, []).append(rule)
    if alone:
        with transaction.atomic():
            told = (notices.owner_gone_notice(theirs) for theirs in owners.values())
            notices.tell([notice for notice in told if notice is not None])
    return alone


def _forget_who_came_back() -> None:
    """An owner who is there again may leave again, and is told of again then."""
    for notice in Notice.objects.filter(kind=notices.OWNER_GONE, period=notices.GONE):
        if people().filter(user_id=notice.subject.rpartition(":")[2]).exists():
            Notice.objects.filter(pk=notice.pk).update(period=f"until {notice.pk}")
