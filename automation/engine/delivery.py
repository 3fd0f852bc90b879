"""Tells people: a notice goes out by mail, at least once, a language at a time, under the lease of its timer."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from automation.catalog.action import Outcome
from automation.core.erasing import ERASED
from automation.core.facts import clean
from automation.engine.effects import EffectCall, OutsideDoor
from automation.engine.notice_mails import compose
from automation.models import Notice
from automation.outbound.answers import OutboundError
from automation.store.claims import Claimed, Settlement
from automation.store.waves import Mailed, Wave

log = structlog.get_logger(__name__)
TRIES = 20  # of each mail
LONGEST_WAIT = 3600
SENT, REFUSED, GIVEN_UP = "sent", "refused", "given up"


def begin(claimed: Claimed, wave: Wave, *, now: datetime, timeout: float, is_poison: bool) -> EffectCall | None:
    """The call that sends the next mail of a notice; None where the wave says what becomes of it instead.

    Of one that `is_poison` the mail at hand is given up, and all of a notice that no mail can be made of.
    """
    try:
        call = prepare(claimed, now=now, timeout=timeout)
    except Exception as error:
        if not is_poison:
            raise
        log.exception("alarm", what="notice not sent", notice_id=claimed.subject_id, error=repr(error)[:500])
        wave.mailed.append(Mailed(claimed.subject_id or 0, {}, sent=False, given_up=_why(repr(error))))
        call = None
    if call is None:
        wave.settlements.append(Settlement(claimed.timer_id, claimed.lease_seq, None, None, None))
    elif is_poison:
        log.error("alarm", what="poison notice", notice_id=claimed.subject_id, tenant_id=claimed.tenant_id)
        settle(call, Outcome.rejected("It ended its workers."), wave, now=now)
    return None if is_poison else call


def prepare(claimed: Claimed, *, now: datetime, timeout: float) -> EffectCall | None:
    """The call that sends the mail of a notice that was tried the least; None when none is left to be sent.

    One mail a call: who was mailed is written down before the next mail goes, and each has the whole time.
    """
    notice = _notice(claimed)
    if notice is None or notice.sent_at is not None:
        return None
    mails = [(_places(notice, mail.to), mail) for mail in compose(notice, only=_open(notice))]
    if not mails:
        return None
    places, message = min(mails, key=lambda one: _tries(notice, one[0]))

    def act(door: OutsideDoor) -> Outcome:
        try:
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
        kept={"places": places},
    )
    return EffectCall(claimed=claimed, run_id=None, step_id=None, timeout=timeout, act=act, door=door)


def settle(call: EffectCall, outcome: Outcome, wave: Wave, *, now: datetime) -> None:
    """Writes down whom a mail reached; the notice's next one goes at once, what failed is tried again later.

    A mail that is refused, or failed too often, is given up and holds up no other. One may come twice, but none gets
    lost.
    """
    claimed, notice = call.claimed, _notice(call.claimed)
    gone = Settlement(claimed.timer_id, claimed.lease_seq, None, None, None)
    if notice is None:
        wave.settlements.append(gone)
        return
    places = call.door.kept["places"]
    tries = _tries(notice, places) + 1
    state, given_up = _after(tries, outcome), ""
    if state in (REFUSED, GIVEN_UP):
        error, people = outcome.error[:500], len(places)
        log.error("alarm", what="notice not sent", notice_id=notice.pk, error=error, people=people)
        given_up = _why(outcome.error)
    changed = {str(place): state for place in places}
    notice.mailed = {**notice.mailed, **changed}
    left = [notice.mailed.get(str(place), 0) for place in _places(notice, _open(notice))]
    ended = {notice.mailed.get(str(place)) for place in _places(notice, set(notice.recipients) - {ERASED})}
    wave.mailed.append(Mailed(notice.pk, changed, sent=ended == {SENT}, given_up=given_up))
    if not left:
        wave.settlements.append(gone)
        return
    # No mail waits because of another: the wait comes once each that is left was tried as often.
    wait = min(2 ** min(left), LONGEST_WAIT) if min(left) >= tries else 0
    due_at = now + timedelta(seconds=wait)
    wave.settlements.append(Settlement(claimed.timer_id, claimed.lease_seq, "deliver", due_at, None))


def _notice(claimed: Claimed) -> Notice | None:
    return Notice.objects.filter(pk=claimed.subject_id or 0, tenant_id=claimed.tenant_id).first()


def _why(error: str) -> str:
    """Why a mail was given up, as it is stored; never empty, since that says that it wasn't."""
    return clean(error[:500]) or "?"


def _after(tries: int, outcome: Outcome) -> str | int:
    """What is written of those whom the mail was for: a word once that is the last of it, else how often it failed."""
    if outcome.state in ("done", "rejected"):
        return SENT if outcome.state == "done" else REFUSED
    return GIVEN_UP if tries >= TRIES else tries


def _open(notice: Notice) -> set[str]:
    """The addresses that are still to be mailed."""
    found = ((address, notice.mailed.get(str(place), 0)) for place, address in enumerate(notice.recipients))
    return {address for address, state in found if address != ERASED and isinstance(state, int)}


def _places(notice: Notice, addresses: Sequence[str] | set[str]) -> list[int]:
    return [place for place, address in enumerate(notice.recipients) if address in addresses]


def _tries(notice: Notice, places: Sequence[int]) -> int:
    """How often a mail failed, by whoever of them was tried most."""
    states = (notice.mailed.get(str(place), 0) for place in places)
    return max((state for state in states if isinstance(state, int)), default=0)
