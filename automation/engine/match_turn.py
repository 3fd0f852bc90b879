"""The matcher's transactions: events that no rule matches all together, the others a few at a time."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import OperationalError, transaction

from automation import failpoints
from automation.conf import Conf
from automation.engine import arming, failing, ruleset
from automation.engine.advance import Advance
from automation.engine.giving_way import in_a_moment, met_a_lock
from automation.engine.match import Guard, Judged, judge
from automation.engine.notices import event_set_aside_notice, rule_held_notice
from automation.engine.pacing import admitted
from automation.engine.ports import Timers
from automation.engine.ruleset import Compiled
from automation.engine.starting import Starting, groups
from automation.engine.stretch import UNDOING
from automation.store import events, pauses, runs
from automation.store.claims import Claimed
from automation.store.events import EventRow
from automation.store.waves import NewDeadLetter, Stale, StepIds, Wave

log = structlog.get_logger(__name__)
EVENTS_A_STRIDE = 25


@dataclass(slots=True)
class MatchTurn:
    """Matches batches of one tenant's events under the lease of its match timer."""

    timers: Timers
    conf: Conf
    ids: StepIds
    advance: Advance

    def run(self, claimed: Claimed, *, between: Callable[[], None], stopping: Callable[[], bool]) -> None:
        """Matches a batch of events; `between` is called after each transaction, so that no outcome is kept waiting."""
        if claimed.lost >= self.conf.lost_limit:
            self._set_aside(claimed)
            return
        suspect = claimed.lost >= self.conf.lost_alone
        batch = self.timers.outbox(claimed.tenant_id, 1 if suspect else self.conf.match_batch)
        failpoints.hit("match.claimed")
        flags = self.timers.flags(claimed.tenant_id)
        if flags is None or flags[1]:
            self.timers.settle_match(claimed, more=False)
            return
        tenant = ruleset.of_tenant(claimed.tenant_id, flags[2])
        judged = judge(tenant, batch, seconds=self.conf.match_slice)
        if not self._mark(claimed, [one.event.id for one in judged if not one.chosen]):
            return
        full = len(batch) >= self.conf.match_batch or len(judged) < len(batch)
        chosen = [one for one in judged if one.chosen]
        now, later = admitted(tenant.pace, chosen)
        turn = _Turn(
            Guard(tenant, self.conf), more=full or claimed.lost > 0 or len(now) < len(chosen), not_before=later
        )
        turn.guard.foresee(now)
        ends_at = math.inf  # the first group has its turn however long judging took: the next turn would be no shorter
        for group in groups(now):
            if stopping() or time.monotonic() > ends_at:
                turn.more = True
                break
            ends_at = min(ends_at, time.monotonic() + self.conf.match_slice)
            if not self._group(claimed, group, turn):
                break
            between()
        if not turn.stale:
            charge = turn.local_steps + len(judged) // EVENTS_A_STRIDE
            more = turn.more or turn.local_steps > 0
            self.timers.settle_match(claimed, more=more, charge=charge, not_before=turn.not_before)

    def _mark(self, claimed: Claimed, idle: list[int]) -> bool:
        """Marks events that no rule matches, all in one statement."""
        if not idle:
            return True
        with transaction.atomic():
            if not self.timers.begin_match(claimed, runs=0).ours:
                return self._stale()
            events.mark_matched(idle)
        return True

    def _stale(self) -> bool:
        log.warning("stale_settle", what="match")
        return False

    def _group(self, claimed: Claimed, group: list[Judged], turn: "_Turn") -> bool:
        """One transaction; False where the batch ends before it: undone for a lock, held by a pause, or stale."""
        try:
            return self._tried(claimed, group, turn)
        except OperationalError as error:
            if not met_a_lock(error):
                raise
            if len(group) > 1:
                # One by one, so that a record which somebody else holds keeps the others waiting no longer.
                return all(self._group(claimed, [one], turn) for one in group)
            turn.more = True
            turn.not_before = in_a_moment(self.timers.now())
            return False

    def _tried(self, claimed: Claimed, group: list[Judged], turn: "_Turn") -> bool:
        """The transaction, and a second one where the first shows that it must be done in another way."""
        try:
            return self._transaction(claimed, group, turn, careful=False)
        except Stale:
            # Runs of these events are there already: an event that was set aside and put back.
            have = runs.started([one.event.id for one in group])
            for one in group:
                one.chosen = [chosen for chosen in one.chosen if (one.event.id, chosen.rule.rule_id) not in have]
            return self._transaction(claimed, group, turn, careful=False)
        except UNDOING:
            # Something in it the database refuses, or an action raised: done again with a savepoint around each action,
            # so that the bad step fails alone.
            return self._transaction(claimed, group, turn, careful=True)

    def _transaction(self, claimed: Claimed, group: list[Judged], turn: "_Turn", *, careful: bool) -> bool:
        wave, steps, guard = Wave(), 0, turn.guard.mark()
        with arming.left_to_caller(), transaction.atomic():
            begun = self.timers.begin_match(claimed, runs=sum(len(one.chosen) for one in group))
            if not begun.ours:
                turn.stale = True
                return self._stale()
            if begun.paused or begun.hold_new:
                failpoints.hit("pause.seen")
                turn.more = not begun.hold_new
                return False
            starting = Starting(guard.tenant, begun.now, iter(begun.run_ids), self.ids, self.advance, careful)
            starting.lock(group)
            opened = False
            for one in group:
                held = guard.weigh(one, begun.now)
                steps += starting.start(one, wave)
                opened = self._hold(one.event, held, wave, now=begun.now) or opened
                guard.count(one, held)
            guard.write()
            wave.write()
            failpoints.hit("match.before_commit")
            self.timers.write(wave.timers)
            self.timers.shelve(wave.shelved)
            turn.more = turn.more or bool(wave.events)
            if opened:
                pauses.bump_rules(claimed.tenant_id)
        failing.judge(wave.failed)
        turn.guard = guard
        turn.local_steps += steps
        return True

    def _hold(self, event: EventRow, rules: list[Compiled], wave: Wave, *, now: datetime) -> bool:
        """Holds rules that ran too often on one record, as by a pause that nobody asked for, and tells their owners."""
        opened = False
        for rule in rules:
            if pauses.open_pause("rule", tenant_id=event.tenant_id, subject_id=rule.rule_id, reason="rate") is None:
                continue
            opened = True
            wave.notices.append(
                rule_held_notice(
                    tenant_id=event.tenant_id,
                    rule_id=rule.rule_id,
                    rule_name=rule.name,
                    reason="rate",
                    now=now,
                )
            )
        return opened

    def _set_aside(self, claimed: Claimed) -> None:
        """An event that took its matcher with it too often is marked as poison, and the next ones go on."""
        with transaction.atomic():
            begun = self.timers.begin_match(claimed, runs=0)
            if not begun.ours:
                self._stale()
                return
            wave = Wave()
            for event in self.timers.outbox(claimed.tenant_id, 1):
                wave.matched.append(event.id)
                wave.notices.append(
                    event_set_aside_notice(
                        tenant_id=event.tenant_id, event_id=event.id, error="Its worker died each time.", now=begun.now
                    )
                )
                wave.dead.append(
                    NewDeadLetter(
                        event.tenant_id,
                        None,
                        None,
                        event.id,
                        "poison",
                        f"Its matcher died {claimed.lost} times in a row.",
                        {"event": {"id": event.id, "change": event.change, "facts": event.facts}},
                    )
                )
                log.error("alarm", what="poison event", event_id=event.id, tenant_id=event.tenant_id)
            wave.write()
            self.timers.write(wave.timers)
            if not self.timers.settle_match(claimed, more=True):
                raise Stale


@dataclass(slots=True)
class _Turn:
    """How a batch goes: what the guard has counted, whether more is left, and when to come back."""

    guard: Guard
    more: bool
    local_steps: int = 0
    not_before: datetime | None = None
    stale: bool = False
