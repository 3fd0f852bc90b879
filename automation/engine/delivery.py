"""Tells people: a notice goes out by mail, at least once, under the lease of its timer."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from automation.catalog.action import Outcome
from automation.engine.effects import EffectCall, OutsideDoor
from automation.engine.notice_mails import compose
from automation.models import Notice
from automation.outbound.answers import OutboundError
from automation.store.claims import Claimed, Settlement
from automation.store.waves import Wave

log = structlog.get_logger(__name__)
TRIES = 20
LONGEST_WAIT = 3600


def prepare(claimed: Claimed, *, now: datetime, timeout: float) -> EffectCall | None:
    """The call that sends a notice; None when it was sent already, has nobody to go to, or is gone."""
    notice = Notice.objects.filter(pk=claimed.subject_id or 0, tenant_id=claimed.tenant_id, sent_at=None).first()
    if notice is None or not notice.recipients:
        return None
    messages = compose(notice)

    def act(door: OutsideDoor) -> Outcome:
        try:
            for message in messages:
                door.outbound.mail(message)
        except OutboundError as error:
            return error.outcome(Outcome)
        return Outcome.done()

    door = OutsideDoor(
        tenant_id=claimed.tenant_id,
        record_key=f"notice:{notice.pk}",
        now=now,
        zone=ZoneInfo("UTC"),
        key=f"notice-{notice.pk}",
        attempt=claimed.deliveries,
        timeout=timeout,
        event={},
        connections={},
    )
    return EffectCall(claimed=claimed, run_id=None, step_id=None, timeout=timeout, act=act, door=door)


def settle(claimed: Claimed, outcome: Outcome, wave: Wave, *, now: datetime) -> None:
    """Marks the notice as sent, or tries again later: a notice may come twice, but doesn't get lost."""
    gone = Settlement(claimed.timer_id, claimed.lease_seq, None, None, None)
    if outcome.state == "done":
        wave.sent.append(claimed.subject_id or 0)
        wave.settlements.append(gone)
    elif claimed.deliveries >= TRIES or outcome.state == "rejected":
        log.error("alarm", what="notice not sent", notice_id=claimed.subject_id, error=outcome.error[:500])
        wave.settlements.append(gone)
    else:
        wait = min(2**claimed.deliveries, LONGEST_WAIT)
        wave.settlements.append(
            Settlement(claimed.timer_id, claimed.lease_seq, "deliver", now + timedelta(seconds=wait), None)
        )
