"""Gives a tenant its share of the workers and its limits; the workers learn of changes at their next claim."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.models import Lane, Limits
from automation.store import lanes, pauses, protection
from tenants.models import Tenant

SEEN = ("max_depth", "events_kept", "rules", "retention_days", "header_days")


def follow_tenant(sender: type[Tenant], instance: Tenant, created: bool, **kwargs: Any) -> None:
    """Gives a new tenant its lane and limits, and has a changed one read anew; a closed one stops at once.

    Receives `post_save`. Without a lane no event of the tenant would ever be matched.
    """
    with transaction.atomic():
        if created:
            Lane.objects.get_or_create(tenant_id=instance.pk)
            Limits.objects.get_or_create(tenant_id=instance.pk)
            pauses.follow_pauses(instance.pk)  # the whole installation may be paused
        else:
            pauses.follow_tenant(instance.pk)


def set_share(tenant_id: int, *, pool: str, max_running: int, weight: int) -> None:
    """Sets the lane's pool, how many steps may run at a time, and its weight. A lowered cap stops nothing that runs."""
    lanes.set_share(tenant_id, pool=pool, max_running=max_running, weight=weight)


def moved_on(present: Limits, *, wanted: Mapping[str, Any]) -> str:
    """What somebody else has changed meanwhile, in a sentence."""
    other = [f"{name}: {getattr(present, name)}" for name in SEEN if getattr(present, name) != wanted.get(name)]
    text = _("Someone else has changed these limits meanwhile: load the page again. They are now: %s")
    return text % ("; ".join(other) or "-")


def save_limits(limits: Limits, *, base_revision: int) -> None:
    """Saves a tenant's limits as they were changed from that revision; `Refused` when they have moved on since.

    The next round of the chores looks whether one of them is reached now.
    """
    with transaction.atomic():
        present = Limits.objects.select_for_update(no_key=True).get(pk=limits.pk)
        if present.revision != base_revision:
            raise Refused(moved_on(present, wanted=vars(limits)))
        limits.revision = base_revision + 1
        engines = ("tenant", "told_events", "told_rules", "told_running", "used_at")
        kept = [one.name for one in Limits._meta.concrete_fields if not one.primary_key and one.name not in engines]
        limits.save(update_fields=kept)
        protection.look_soon(limits.tenant_id)
        pauses.bump_rules(limits.tenant_id)
