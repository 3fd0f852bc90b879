"""Writes what follows a step: the next one with its wake-up, a retry, a dead letter, or the run's end."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from automation.catalog.action import Outcome
from automation.core.backoff import next_try
from automation.core.calendars import Span, add
from automation.core.decisions import Settled
from automation.core.planner import following
from automation.core.spec import Node, Retry
from automation.engine.notices import dead_letter_notice
from automation.engine.progress import GONE, FollowUp, RunInHand, StepInHand
from automation.engine.stretch import Stretch, write_step
from automation.store.waves import NewDeadLetter, NewNotice, Wave


@dataclass(slots=True)
class Advance:
    """The stage: `ids` hands out step ids, `rng` is the chance of the jitter, `scale` shortens delays in the demo."""

    ids: Callable[[], int]
    rng: random.Random
    scale: float = 1.0

    def enter(self, run: RunInHand, index: int | None, wave: Wave) -> FollowUp:
        """Writes the step that comes next with its wake-up; without one, the run has succeeded."""
        if index is None:
            run.state, run.reason = "succeeded", ""
            return GONE
        node = run.spec.nodes[index]
        step = StepInHand(node=node, id=self.ids())
        if node.kind == "delay" and not node.off:
            due_at = self._end_of(node, run)
            step.input = {"until": due_at.isoformat(), "from": run.now.isoformat()}
            if self.scale != 1.0:
                step.input["scale"] = self.scale
            write_step(wave, run, step, "waiting")
            run.state = "waiting"
            return FollowUp("delay", due_at, step.id)
        write_step(wave, run, step, "pending", started=False)
        run.state = run.state if run.was == "pending" else "running"
        return FollowUp("step", None, step.id)

    def after_stretch(self, stretch: Stretch, wave: Wave) -> FollowUp:
        """What follows a run's local steps; their rows go into the wave too."""
        wave.steps += stretch.wave.steps
        wave.new_steps += stretch.wave.new_steps
        wave.attempts += stretch.wave.attempts
        if stretch.failed is None or stretch.outcome is None:
            return self._enter_next(stretch, wave)
        return self.after_attempt(stretch.run, stretch.failed, stretch.outcome, wave)

    def _enter_next(self, stretch: Stretch, wave: Wave) -> FollowUp:
        run = stretch.run
        follow_up = self.enter(run, stretch.next, wave)
        if run.state == "pending" and stretch.wave.new_steps:
            run.state = "running"
        return follow_up

    def after_attempt(self, run: RunInHand, step: StepInHand, outcome: Outcome, wave: Wave) -> FollowUp:
        """What follows an attempt that has ended; the attempt's own row is the caller's."""
        if outcome.state == "done":
            write_step(wave, run, step, "succeeded", output=outcome.kept(), ended=True)
            run.outputs[step.node.path] = outcome.output
            return self.enter(run, following(run.spec, step.node.index, Settled(step.node.path, "succeeded")), wave)
        if outcome.state == "skipped":
            write_step(wave, run, step, "skipped", reason=outcome.reason, output=outcome.kept(), ended=True)
            return self.enter(run, following(run.spec, step.node.index, Settled(step.node.path, "skipped")), wave)
        if outcome.state in ("retry", "timeout"):
            return self._retry(run, step, outcome, wave)
        return self.fail(run, step, outcome, wave, reason=outcome.reason or "delivery_unknown")

    def _retry(self, run: RunInHand, step: StepInHand, outcome: Outcome, wave: Wave) -> FollowUp:
        retry = step.node.retry or Retry()
        wait = next_try(retry, failures=step.failures, rng=self.rng, retry_after=outcome.retry_after)
        if wait is None:
            reason = "deadline" if outcome.state == "timeout" else "exhausted"
            return self.fail(run, step, outcome, wave, reason=reason)
        write_step(wave, run, step, "retrying", reason="", error=outcome.error)
        run.state = "running"
        return FollowUp("retry", run.now + timedelta(seconds=wait), step.id)

    def fail(self, run: RunInHand, step: StepInHand, outcome: Outcome, wave: Wave, *, reason: str) -> FollowUp:
        """The step failed for good: the run goes on where its author said so, else it ends with a dead letter."""
        if step.node.if_it_fails == "continue" and reason != "delivery_unknown":
            write_step(wave, run, step, "failed", reason=reason, error=outcome.error, ended=True)
            return self.enter(run, following(run.spec, step.node.index, Settled(step.node.path, "failed")), wave)
        write_step(wave, run, step, "dead", reason=reason, error=outcome.error, ended=True)
        wave.dead.append(
            NewDeadLetter(
                tenant_id=run.event.tenant_id,
                run_id=run.id,
                step_id=step.id,
                event_id=run.event.id,
                reason=reason,
                error=outcome.error,
                snapshot=snapshot(run, step, outcome),
            )
        )
        wave.notices.append(self._notice(run, step, outcome, reason))
        run.state = "waiting" if reason == "delivery_unknown" else "failed"
        run.reason = reason
        return GONE

    def _notice(self, run: RunInHand, step: StepInHand, outcome: Outcome, reason: str) -> NewNotice:
        return dead_letter_notice(
            tenant_id=run.event.tenant_id,
            rule_id=run.rule.rule_id,
            rule_name=run.rule.name,
            run_id=run.id,
            step_path=step.node.path,
            reason=reason,
            error=outcome.error,
            now=run.now,
        )

    def _end_of(self, node: Node, run: RunInHand) -> datetime:
        """When a delay ends: calendar arithmetic in the tenant's zone, shortened only where the deployment says so."""
        due_at = add(run.now, node.span or Span(0, 0, 0), run.tenant.zone)
        return run.now + (due_at - run.now) * self.scale if self.scale != 1.0 else due_at


def snapshot(run: RunInHand, step: StepInHand, outcome: Outcome) -> dict[str, Any]:
    """The context that a person needs to understand a dead step, as it was at that moment."""
    return {
        "rule": {"id": run.rule.rule_id, "name": run.rule.name, "version": run.rule.number},
        "event": {"id": run.event.id, "change": run.event.change, "facts": run.event.facts},
        "step": {"path": step.node.path, "action": step.node.action, "input": step.input, "attempts": step.attempts},
        "outputs": run.outputs,
        "error": outcome.error,
    }
