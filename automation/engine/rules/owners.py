"""Gives rules to other people, and tells of those whose owner has left: they go on, and nobody looks after them."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from automation.engine import notices
from automation.engine.operate import Refused
from automation.engine.references import References, broken_rules, people, switch_off
from automation.engine.rules.finding import find, record
from automation.models import Notice, Rule
from automation.store.waves import NewNotice
from tenants.context import acting_for

OWNERLESS, SUBJECT = "rules:", 200  # begins the subject of a notice about rules without any owner; its length


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
    """The current tenant's rules that are on and that nobody looks after.

    Their owner has left the tenant, can't log in any more, or was deleted; or they never had one.
    """
    there = people().filter(user_id=OuterRef("owner_id"))
    alone = Rule.objects.filter(~Exists(there), on=True, deleted_at=None)
    return list(alone.select_related("owner").order_by("position", "id"))


def tell_owners_gone() -> list[Rule]:
    """Tells the current tenant's admins of each owner who has left rules behind that are on, once and of all of them.

    Rules whose owner was deleted say no more whose they were: those that weren't told of yet are told of together.

    They go on: their runs act as the tenant's automation, not as a person. Answers the rules, told now or before.
    """
    alone, told = _left_behind()
    if told:
        with transaction.atomic():
            notices.tell(told)
    return alone


def after_leaving(tenant_ids: Iterable[int]) -> dict[int, list[Rule]]:
    """What follows where somebody or something that rules name is gone: the rules that were switched off, by tenant.

    Tells of those, and of rules that nobody looks after any more. All rules are locked first, then all lanes.
    """
    off, told = dict[int, list[Rule]](), list[NewNotice]()
    with transaction.atomic():
        for tenant_id in sorted(tenant_ids):
            with acting_for(tenant_id):
                references = References(tenant_id)
                found = switch_off(references, broken_rules(references))
                off[tenant_id] = found.rules
                told += [*found.notices, *_left_behind()[1]]
        notices.tell(told, changed=[tenant_id for tenant_id, rules in off.items() if rules])
    return off


def _left_behind() -> tuple[list[Rule], list[NewNotice]]:
    """The current tenant's rules that nobody looks after, and what its admins don't know of them yet."""
    _forget_who_came_back()
    owners: dict[int | None, list[Rule]] = {}
    alone, known = owner_gone(), _known_without_owner()
    for rule in alone:
        if rule.owner_id is not None or not any(first <= rule.pk <= last for first, last in known):
            owners.setdefault(rule.owner_id, []).append(rule)
    told = (notices.owner_gone_notice(theirs, subject=_subject(theirs)) for theirs in owners.values())
    return alone, [notice for notice in told if notice is not None]


def _subject(theirs: Sequence[Rule]) -> str:
    owner_id = theirs[0].owner_id
    return _ownerless(rule.pk for rule in theirs) if owner_id is None else f"owner:{owner_id}"


def _forget_who_came_back() -> None:
    """An owner who is there again may leave again, and is told of again then; so is a rule that has one again."""
    for notice in Notice.objects.filter(kind=notices.OWNER_GONE, period=notices.GONE):
        if notice.subject.startswith(OWNERLESS):
            _forget_owned(notice)
        elif people().filter(user_id=notice.subject.rpartition(":")[2]).exists():
            Notice.objects.filter(pk=notice.pk).update(period=f"until {notice.pk}")


def _forget_owned(notice: Notice) -> None:
    """Leaves in the subject of a notice the rules that still have no owner."""
    named = Q(pk__in=[])
    for first, last in _spans(notice.subject):
        named |= Q(pk__range=(first, last))
    left = list(Rule.objects.filter(named, owner=None, deleted_at=None).values_list("pk", flat=True))
    now = {"subject": _ownerless(left)} if left else {"period": f"until {notice.pk}"}
    Notice.objects.filter(pk=notice.pk).exclude(**now).update(**now)


def _known_without_owner() -> list[tuple[int, int]]:
    """The rules without an owner that the admins were told of, as spans of ids."""
    told = Notice.objects.filter(kind=notices.OWNER_GONE, period=notices.GONE, subject__startswith=OWNERLESS)
    return [span for subject in told.values_list("subject", flat=True) for span in _spans(subject)]


def _ownerless(rule_ids: Iterable[int]) -> str:
    """The subject of a notice about rules without an owner: their ids, or one span of them where they are many."""
    named = sorted(rule_ids)
    subject = OWNERLESS + ",".join(map(str, named))
    return subject if len(subject) <= SUBJECT else f"{OWNERLESS}{named[0]}-{named[-1]}"


def _spans(subject: str) -> list[tuple[int, int]]:
    """The ids of the rules that such a subject names."""
    parts = (part.partition("-") for part in subject.removeprefix(OWNERLESS).split(","))
    return [(int(first), int(last or first)) for first, _dash, last in parts]
