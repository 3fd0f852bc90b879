"""Prepares outside steps and commits the intent before the effect; reads what came back as an outcome."""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from django.db import Error
from pydantic import ValidationError

from automation.catalog.action import Action, Effect, Outcome
from automation.catalog.params import ConnectionRef, places
from automation.conf import Conf
from automation.core.errors import TemplateError
from automation.core.keys import idempotency_key
from automation.core.spec import Retry
from automation.engine.already import known
from automation.engine.effects import ConnectionValues, EffectCall, Finished, OutsideDoor, perform, reachable
from automation.engine.filling import event_left, fill
from automation.engine.holding import PUT_OFF, Cancel, Drop, PutBack
from automation.engine.prepare import PrepareDoor
from automation.engine.progress import RunInHand, StepInHand
from automation.store.claims import Claimed
from automation.store.waves import ClosedAttempt, NewAttempt, StepChange, Wave, dumps

log = structlog.get_logger(__name__)
EXCERPT = 1000
LOST = "The worker died before the outcome was recorded."


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt ended before anything was sent; `final` where it is the step's last word, with its reason."""

    step: StepInHand
    outcome: Outcome
    final: str = ""


@dataclass(frozen=True, slots=True)
class Intended:
    """The intent is in the wave; the call may be made once it is committed."""

    call: EffectCall


Decision = PutBack | Drop | Cancel | Ended | Intended


def lost_attempt(step: StepInHand, wave: Wave) -> Outcome | None:
    """Closes an attempt that its worker left open; an outcome where that ends the step, None where it may go on."""
    row = step.row
    if row is None or not row.open_attempt:
        return None
    wave.closed.append(ClosedAttempt(step.id, row.attempts, "lost", LOST))
    if row.effect_state == "intended" and step.node.effect == Effect.AT_MOST_ONCE:
        step.row = replace(row, effect_state="uncertain")
        return Outcome.uncertain("The worker died after the message may have been sent.")
    if step.failures >= (step.node.retry or Retry()).max_attempts:
        return Outcome.retry("The worker died each time.")
    return None


@dataclass(slots=True)
class Execute:
    """The stage: `worker` is under whose lease it works."""

    worker: uuid.UUID
    conf: Conf

    def poison(self, step: StepInHand, claimed: Claimed, wave: Wave) -> Ended | None:
        """A step that took its worker with it too often isn't executed any more."""
        if claimed.lost < self.conf.lost_limit:
            return None
        lost_attempt(step, wave)
        return Ended(step, Outcome.retry(f"Its worker died {claimed.lost} times in a row."), final="poison")

    def intend(self, run: RunInHand, step: StepInHand, claimed: Claimed, wave: Wave) -> Decision:
        """Fills an outside step and writes its intent, or says what happens instead."""
        action = run.rule.action(step.node)
        if action is None:
            return PutBack(PUT_OFF)
        poisoned = self.poison(step, claimed, wave)
        if poisoned is not None:
            return poisoned
        lost = lost_attempt(step, wave)
        if lost is not None:
            return Ended(step, lost, final="delivery_unknown" if lost.state == "uncertain" else "exhausted")
        done = known(run, step) if run.forked else None
        if done is not None:
            return Ended(step, done, final="delivery_unknown" if done.state == "uncertain" else "")
        return self._fill(run, step, claimed, action, wave)

    def _fill(self, run: RunInHand, step: StepInHand, claimed: Claimed, action: Action, wave: Wave) -> Decision:
        step.attempts += 1
        try:
            params = fill(run, step.node, action)
            step.input = params.model_dump(mode="json")
            used = {name: self._connection(run, name) for name in _connection_names(params)}
            stopped = next((name for name in used if name in run.tenant.paused_connections), None)
            if stopped is not None:
                shelf = ("connection", run.tenant.connections[stopped].pk)
                return PutBack(PUT_OFF, run.tenant.paused_connections[stopped], shelf=shelf)
            prepared = PrepareDoor(run)
            instead = action.prepare(params, prepared)
            step.input |= prepared.kept
        except TemplateError as error:
            instead = Outcome.rejected(str(error), reason="template_error")
        except MissingConnection as error:
            instead = Outcome.rejected(str(error), reason="broken_reference")
        except ValidationError as error:
            instead = Outcome.rejected(str(error).partition("\n")[0])
        except Error:
            raise
        except Exception as error:
            log.exception("faulty action", action=step.node.action, run_id=run.id)
            instead = Outcome.retry(f"{type(error).__name__}: {error}")
        if instead is not None:
            instead = instead.cleaned()
            self._closed(run, step, claimed, instead, wave)
            return Ended(step, instead)
        call = self._call(run, step, claimed, action, params, used, kept=prepared.kept)
        self._write_intent(run, step, claimed, call, wave)
        return Intended(call)

    def _connection(self, run: RunInHand, name: str) -> ConnectionValues:
        found = run.tenant.connections.get(name)
        if found is None:
            raise MissingConnection(f"There is no connection {name!r} any more.")
        secret = found.secret()
        if secret is None:
            raise MissingConnection(f"The secret of the connection {name!r} can't be read any more: enter it again.")
        return reachable(found, secret)

    def _call(
        self,
        run: RunInHand,
        step: StepInHand,
        claimed: Claimed,
        action: Action,
        params: Any,
        used: dict[str, ConnectionValues],
        *,
        kept: dict[str, Any],
    ) -> EffectCall:
        event, node = run.event, step.node
        epoch = run.epoch + (step.row.epoch if step.row else 0)
        step.key = idempotency_key(
            tenant_id=event.tenant_id,
            record_key=event.record_key,
            rule_id=run.rule.rule_id,
            event_id=event.id,
            path=node.path,
            epoch=epoch,
        )
        # The lab's switch: what every product without stable keys sends.
        key = (
            step.key
            if self.conf.idempotency_keys
            else hashlib.sha256(f"{step.key}{step.attempts}".encode()).hexdigest()
        )
        timeout = min(node.timeout or action.default_timeout, self.conf.step_timeout_max)
        door = OutsideDoor(
            tenant_id=event.tenant_id,
            record_key=event.record_key,
            now=run.now,
            zone=run.tenant.zone,
            key=key,
            attempt=step.attempts,
            timeout=timeout,
            event={"id": event.id, **event_left(run)},
            connections=used,
            kept=kept,
        )
        return EffectCall(
            claimed=claimed,
            run_id=run.id,
            step_id=step.id,
            timeout=timeout,
            act=perform(action, params),
            door=door,
            effect=node.effect,
        )

    def _write_intent(self, run: RunInHand, step: StepInHand, claimed: Claimed, call: EffectCall, wave: Wave) -> None:
        was = step.row.state if step.row else "pending"
        sha = hashlib.sha256((dumps(step.input) or "").encode()).hexdigest()
        wave.attempts.append(
            NewAttempt(run.event.tenant_id, step.id, step.attempts, self.worker, claimed.lease_seq, "")
        )
        wave.steps.append(
            StepChange(
                step_id=step.id,
                was=was,
                state="running",
                attempts=step.attempts,
                deliveries=claimed.deliveries,
                effect_state="intended",
                idempotency_key=step.key,
                request_sha256=sha,
                connection=_places(call.door.connections),
                input=step.input,
                started=True,
            )
        )
        run.state, run.reason = "running", ""

    def _closed(self, run: RunInHand, step: StepInHand, claimed: Claimed, outcome: Outcome, wave: Wave) -> None:
        result = "ok" if outcome.state in ("done", "skipped") else "failed"
        wave.attempts.append(
            NewAttempt(
                run.event.tenant_id,
                step.id,
                step.attempts,
                self.worker,
                claimed.lease_seq,
                result,
                answer=outcome.error,
            )
        )


class MissingConnection(Exception):
    """A step names a connection that the tenant doesn't have any more."""


def came_back(finished: Finished, step: StepInHand, wave: Wave) -> Outcome:
    """Closes the attempt of an effect that came back, and says what its outcome means under the step's effect class."""
    outcome = finished.outcome
    at_most_once = finished.call.effect == Effect.AT_MOST_ONCE
    closes = {"done": "ok", "skipped": "ok", "timeout": "timeout"}.get(outcome.state, "failed")
    # No escapes: erasing a person finds names in it as they are written.
    output = json.dumps(outcome.output, default=str, ensure_ascii=False) if outcome.output else ""
    answer = outcome.error or output
    wave.closed.append(ClosedAttempt(step.id, step.attempts, closes, answer[:EXCERPT]))
    certain = {"done": "confirmed", "skipped": "none", "retry": "none", "rejected": "none"}.get(
        outcome.state, "uncertain"
    )
    if step.row is not None:
        step.row = replace(step.row, effect_state=certain, open_attempt=False)
    if outcome.state in ("uncertain", "timeout") and at_most_once:
        return Outcome.uncertain(outcome.error)
    if outcome.state == "uncertain":
        return Outcome.retry(outcome.error)
    return outcome


def _places(used: Mapping[str, ConnectionValues]) -> str:
    """Where a step has a place while it may be on its way, for `store.places.taken`."""
    if len(used) == 1:
        return next(iter(used))
    return " ".join(sorted(f"#{one.id}" for one in used.values()))


def _connection_names(params: Any) -> Iterator[str]:
    return (place.value for place in places(params) if isinstance(place.marker, ConnectionRef))
