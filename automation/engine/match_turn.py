"""The matcher's transactions: events that no rule matches together, each of the others in one of its own."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from automation import failpoints
from automation.catalog import registry
from automation.conf import Conf
from automation.engine import ruleset
from automation.engine.advance import Advance
from automation.engine.execute import PUT_OFF
from automation.engine.local import RecordInHand, take
from automation.engine.match import Chosen, Guard, Judged, judge
from automation.engine.notices import rule_held_notice
from automation.engine.ports import Timers
from automation.engine.progress import FollowUp, RunInHand
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.stretch import walk
from automation.store import events, pauses, runs
from automation.store.claims import Claimed
from automation.store.events import EventRow
from automation.store.runs import NewRun
from automation.store.timers import NewTimer
from automation.store.waves import NewDeadLetter, RunChange, Stale, StepIds, Wave

log = structlog.get_logger(__name__)
LOCKED, HELD = -1, -2  # what an event's transaction answers when it was undone
LOCK_STATES = frozenset({"55P03", "40P01"})  # lock_not_available, deadlock_detected
GIVE_WAY = 0.2  # seconds until a batch that met somebody's lock goes on
EVENTS_A_STRIDE = 25


@dataclass(slots=True)
class MatchTurn:
    """Matches batches of one tenant's events under the lease of its match timer."""

    timers: Timers
    conf: Conf
    ids: StepIds
    advance: Advance
    rng: random.Random = field(default_factory=random.Random)

    def run(self, claimed: Claimed, *, between: Callable[[], None], stopping: Callable[[], bool]) -> None:
        """Matches a batch of events; `between` is called after each transaction, so that no outcome is kept waiting."""
        if claimed.lost >= self.conf.lost_limit:
            self._set_aside(claimed)
            return
        started, local_steps = time.monotonic(), 0
        batch = events.unmatched(
            claimed.tenant_id, 1 if claimed.lost >= self.conf.lost_alone else self.conf.match_batch
        )
        failpoints.hit("match.claimed")
        flags = events.flags([claimed.tenant_id]).get(claimed.tenant_id)
        if flags is None or flags[1]:
            self.timers.settle_match(claimed, more=False)
            return
        tenant = ruleset.of_tenant(claimed.tenant_id, flags[2])
        judged = judge(tenant, batch)
        idle = [one.event.id for one in judged if not one.chosen]
        if not self._mark(claimed, idle):
            return
        guard = Guard(tenant, self.conf)
        more, not_before = len(batch) >= self.conf.match_batch or claimed.lost > 0, None
        for one in (one for one in judged if one.chosen):
            if stopping() or time.monotonic() - started > self.conf.match_slice:
                more = True
                break
            outcome = self._one(claimed, one, guard)
            if outcome is None:
                return
            if outcome < 0:
                more = outcome == LOCKED or not self._holds_new(claimed.tenant_id)
                not_before = self.timers.now() + timedelta(seconds=GIVE_WAY) if outcome == LOCKED else None
                break
            local_steps += outcome
            more = more or outcome > 0
            between()
        self.timers.settle_match(
            claimed, more=more, charge=local_steps + len(batch) // EVENTS_A_STRIDE, not_before=not_before
        )

    def _mark(self, claimed: Claimed, idle: list[int]) -> bool:
        if not idle:
            return True
        with transaction.atomic():
            if not self.timers.hold([claimed]):
                return self._stale()
            events.mark_matched(idle)
        return True

    def _stale(self) -> bool:
        log.warning("stale_settle", what="match")
        return False

    def _holds_new(self, tenant_id: int) -> bool:
        flags = events.flags([tenant_id]).get(tenant_id)
        return bool(flags and flags[1])

    def _one(self, claimed: Claimed, judged: Judged, guard: Guard) -> int | None:
        """One event's transaction: how many local steps it did; LOCKED or HELD where it was undone; None when stale."""
        try:
            return self._event(claimed, judged, guard, careful=False)
        except OperationalError as error:
            if _is_lock_timeout(error):
                return LOCKED
            raise
        except (DataError, IntegrityError):
            # Something in it the database refuses: done again with a savepoint around each action, so that the bad
            # step fails alone.
            return self._event(claimed, judged, guard, careful=True)

    def _event(self, claimed: Claimed, judged: Judged, guard: Guard, *, careful: bool) -> int | None:
        with transaction.atomic():
            _lock_timeout()
            if not self.timers.hold([claimed]):
                self._stale()
                return None
            flags = events.flags([claimed.tenant_id])[claimed.tenant_id]
            if flags[0] or flags[1]:
                return HELD
            held = guard.weigh(judged)
            wave = Wave()
            done = self._start(judged, guard.tenant, wave, careful=careful)
            opened = self._hold(judged.event, held, wave)
            wave.write()
            events.mark_matched([judged.event.id])
            failpoints.hit("match.before_commit")
            self.timers.write(wave.timers)
            if opened:
                pauses.bump_rules(claimed.tenant_id)
        guard.count(judged, held)
        return done

    def _start(self, judged: Judged, tenant: TenantRules, wave: Wave, *, careful: bool) -> int:
        """Inserts the event's runs and does their leading local steps, in position order; answers how many steps."""
        event, now = judged.event, self.timers.now()
        self._supersede(judged)
        ids = runs.insert(
            event,
            [
                NewRun(one.rule.rule_id, one.rule.version_id, "suppressed" if one.reason else "pending", one.reason)
                for one in judged.chosen
            ],
        )
        starting = [one for one in judged.chosen if not one.reason and one.rule.rule_id in ids]
        record = _take(event) if any(_leads_local(one.rule) and not one.held for one in starting) else None
        steps = 0
        for place, chosen in enumerate(starting):
            run = RunInHand(
                id=ids[chosen.rule.rule_id], tenant=tenant, rule=chosen.rule, event=event, was="pending", now=now
            )
            if chosen.held:
                self._keep(run, chosen, wave)
                continue
            stretch = walk(run, run.spec.first, record, ids=self.ids.next, careful=careful)
            steps += len(stretch.wave.new_steps) + bool(stretch.failed)
            self._follow(run, self.advance.after_stretch(stretch, wave), wave)
            if stretch.stops_later:
                runs.suppress([ids[later.rule.rule_id] for later in starting[place + 1 :]], "stopped_by_rule")
                break
        return steps

    def _follow(self, run: RunInHand, follow_up: FollowUp, wave: Wave) -> None:
        if follow_up.kind is not None:
            wave.timers.append(
                NewTimer(
                    run.event.tenant_id, follow_up.kind, follow_up.due_at, run_id=run.id, step_id=follow_up.step_id
                )
            )
        if run.state != run.was or run.reason:
            wave.runs.append(RunChange(run.id, run.was, run.state, run.reason))

    def _keep(self, run: RunInHand, chosen: Chosen, wave: Wave) -> None:
        """A paused rule gets its run, which waits: that is how its events are kept while other rules go on."""
        follow_up = self.advance.enter(run, run.spec.first, wave)
        run.reason = chosen.held
        if follow_up.kind == "step":
            follow_up = follow_up._replace(due_at=run.now + timedelta(seconds=PUT_OFF))
        self._follow(run, follow_up, wave)

    def _supersede(self, judged: Judged) -> None:
        old = sorted({run_id for chosen in judged.chosen for run_id in chosen.supersedes})
        if old:
            runs.supersede(judged.event.tenant_id, old)

    def _hold(self, event: EventRow, rules: list[Compiled], wave: Wave) -> bool:
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
                    now=self.timers.now(),
                )
            )
        return opened

    def _set_aside(self, claimed: Claimed) -> None:
        """An event that took its matcher with it too often is marked as poison, and the next ones go on."""
        with transaction.atomic():
            if not self.timers.hold([claimed]):
                self._stale()
                return
            wave = Wave()
            for event in events.unmatched(claimed.tenant_id, 1):
                events.mark_matched([event.id])
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
            if not self.timers.settle_match(claimed, more=True):
                raise Stale


def _lock_timeout() -> None:
    """A user who waits for a row of ours gets it, or we give way before the user's own deadlock check would run."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '200ms'")


def _is_lock_timeout(error: Exception) -> bool:
    return getattr(error.__cause__, "sqlstate", "") in LOCK_STATES


def _leads_local(rule: Compiled) -> bool:
    """Whether the rule's leading steps may touch the record; if not, it isn't locked."""
    if rule.spec is None or rule.spec.first is None:
        return False
    first = rule.spec.nodes[rule.spec.first]
    return first.local or (first.kind == "branch" and any(node.local for node in rule.spec.nodes))


def _take(event: EventRow) -> RecordInHand | None:
    if not event.model or event.record is None:
        return None
    return take(registry.model(event.model), event.tenant_id, event.record)
