"""Says how much of its limits a tenant uses, and tells its people when one is nearly or wholly used up."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine import reached
from automation.engine.notices import limit_notice, tell
from automation.store import clock, protection
from automation.store.protection import Used

LOOKED_EVERY = timedelta(minutes=15)
NEAR, LOOKED_EVERY_NEAR = 50, timedelta(minutes=1)  # from so many percent on, until all is used up
AT_ONCE = 50  # tenants a round of the chores
SLICE = 0.2  # seconds of it: the events of each are counted
NEARLY, WHOLLY = 80, 100  # percent at which people are told
FORGET_BELOW = 10  # percent points: what has fallen so far below is told of again


@dataclass(frozen=True, slots=True)
class Use:
    """One limit of a tenant: its name, how much is used of how much, and what happens beyond it."""

    name: str
    used: int
    limit: int
    told: int
    beyond: str

    @property
    def percent(self) -> int:
        """The share that is used, rounded down; a limit of nothing is used up."""
        return WHOLLY if self.limit <= 0 else min(self.used * 100 // self.limit, WHOLLY)


def usage(tenant_id: int) -> list[Use]:
    """A tenant's limits with their use at this moment."""
    return [use for found in protection.used(tenant_ids=[tenant_id]) for use in _uses(found)]


def look() -> int:
    """Looks at the tenants whose turn it is and tells of what is used up; answers how many notices. A chore."""
    now, told, ends_at = clock.now(), 0, time.monotonic() + SLICE
    crowded = protection.crowded(most=AT_ONCE)
    for _tenant in range(AT_ONCE):
        ids = [crowded.pop()] if crowded else None
        found = protection.used(tenant_ids=ids, before=now - LOOKED_EVERY, most=1)
        for one in found:
            with transaction.atomic():
                told += _tell(one, now=now)
        if not (found or crowded) or time.monotonic() > ends_at:
            break
    return told


def _tell(found: Used, *, now: datetime) -> int:
    levels, notices = {}, []
    for use in _uses(found):
        level = _level(use, found)
        if level > use.told:
            words = partial(_words, found, use.name)
            notices.append(limit_notice(tenant_id=found.tenant_id, limit=use.name, percent=level, words=words, now=now))
            reached.write(found.tenant_id, use.name, percent=level, used=use.used, allowed=use.limit)
        levels[use.name] = level if level > use.told or _has_fallen(use, found) else use.told
    earlier = LOOKED_EVERY - LOOKED_EVERY_NEAR if _is_near(found) else timedelta()
    protection.set_told(
        found.tenant_id,
        events=levels["events_kept"],
        rules=levels["rules"],
        running=levels["running"],
        used_at=now - earlier,
    )
    tell(notices)
    return len(notices)


def refused(tenant_id: int, name: str) -> None:
    """Somebody was just refused what would go beyond a limit: people are told, and rules hear of it, once a day."""
    now = clock.now()
    for found in protection.used(tenant_ids=[tenant_id]):
        with transaction.atomic():
            _tell(found, now=now)
            use = next(one for one in _uses(found) if one.name == name)
            words = partial(_words, found, name)
            notice = limit_notice(tenant_id=tenant_id, limit=name, percent=WHOLLY, words=words, now=now)
            if notice.title:  # nobody was told of it today
                reached.write(tenant_id, name, percent=WHOLLY, used=use.used, allowed=use.limit)
            tell([notice])


def _is_near(found: Used) -> bool:
    """Whether something may soon be used up."""
    return any(use.name != "running" and NEAR <= use.percent < WHOLLY for use in _uses(found))


def _uses(found: Used) -> list[Use]:
    return [
        Use("events_kept", found.events, found.events_kept, found.told_events, _("Older events lose their facts.")),
        Use("rules", found.rules, found.rules_limit, found.told_rules, _("No further rule can be made.")),
        Use("running", found.running, found.max_running, found.told_running, _("Work waits in line.")),
    ]


def _level(use: Use, found: Used) -> int:
    """What people are told of it. All places taken is how lanes work, so it counts only once work is kept waiting."""
    if use.name == "running":
        return WHOLLY if found.kept_waiting else 0
    return WHOLLY if use.percent >= WHOLLY else NEARLY if use.percent >= NEARLY else 0


def _has_fallen(use: Use, found: Used) -> bool:
    if use.name == "running":
        return not found.kept_waiting
    return use.percent < use.told - FORGET_BELOW


def _words(found: Used, name: str) -> str:
    """How much of a limit is used, in the language of the moment."""
    use = next(one for one in _uses(found) if one.name == name)
    labels = {"events_kept": _("events kept"), "rules": _("rules"), "running": _("steps that run at a time")}
    places = {"label": labels[use.name], "used": use.used, "limit": use.limit, "beyond": use.beyond}
    return _("%(label)s: %(used)d of %(limit)d. Beyond the limit: %(beyond)s") % places
