"""Raises the events of runs that ended, for rules that listen to them."""

from collections.abc import Iterable

from automation.core.causes import child
from automation.engine.progress import RunInHand
from automation.engine.ruleset import RUN_ENDED
from automation.store.events import NewEvent
from automation.store.waves import NewDeadLetter, Wave

FINISHED, FAILED, DEAD_LETTERED = "finished", "failed", "dead_lettered"
OUTCOMES = {"succeeded": FINISHED, "failed": FAILED}
ERROR_KEPT = 2000


def add_ended(wave: Wave, runs: Iterable[RunInHand]) -> None:
    """Adds to the wave an event for each run that ended in it, where the tenant has a rule that listens.

    Also which rules had a run that failed: their breakers look at them once the wave is committed.

    A run that was itself started by such an event raises none, so what handles failures can't fail without end.
    """
    for run in runs:
        if run.state == "failed" and run.was != "failed":
            wave.failed.append((run.event.tenant_id, run.rule.rule_id))
        if not run.tenant.hears_ends or run.event.kind == RUN_ENDED:
            continue
        letter = next((one for one in reversed(wave.dead) if one.run_id == run.id), None)
        outcomes = _outcomes(run, letter)
        if outcomes:
            wave.events.append(_event(run, letter, outcomes))


def _outcomes(run: RunInHand, letter: NewDeadLetter | None) -> list[str]:
    ended = [OUTCOMES[run.state]] if run.state != run.was and run.state in OUTCOMES else []
    return ended + ([DEAD_LETTERED] if letter is not None else [])


def _event(run: RunInHand, letter: NewDeadLetter | None, outcomes: list[str]) -> NewEvent:
    """About the run's record, with the values that its own steps read."""
    event = run.event
    data = {
        "outcome": outcomes[0],
        "dead_lettered": letter is not None,
        "rule": run.rule.name,
        "rule_id": run.rule.rule_id,
        "run_id": run.id,
        "reason": run.reason,
        "step": letter.snapshot["step"]["path"] if letter is not None else "",
        "error": letter.error[:ERROR_KEPT] if letter is not None else "",
    }
    facts = {
        "change": "",
        "before": {},
        "after": {},
        "snapshot": run.facts().get("snapshot") or {},
        "data": data,
        "cut": list(event.facts.get("cut") or ()),
        "source": "automation",
        "outcomes": outcomes,
    }
    cause = child(
        event.cause,
        event_id=event.id,
        rule_id=run.rule.rule_id,
        run_id=run.id,
        step_id=letter.step_id if letter is not None else None,
        record_key=event.record_key,
    )
    return NewEvent(event.tenant_id, RUN_ENDED, event.model, event.record, facts, run.rule.name, event.batch, cause)
