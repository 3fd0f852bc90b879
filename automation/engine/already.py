"""Looks whether an earlier run of the same rule and event has had the effect that a replay is about to repeat."""

from automation.catalog.action import Effect, Outcome
from automation.engine.progress import RunInHand, StepInHand
from automation.store import by_hand


def known(run: RunInHand, step: StepInHand) -> Outcome | None:
    """The outcome that a replayed step takes over instead of sending anything; None where it is to be sent.

    A confirmed effect isn't repeated. One that may have happened, and must never happen twice, waits for a person. Any
    other is sent under the key that the receiver knows.
    """
    if step.row is not None and (step.row.attempts or step.row.epoch):
        return None  # it has begun by itself, or a person wants it sent as new
    earlier = by_hand.earlier(
        event_id=run.event.id,
        rule_id=run.rule.rule_id,
        run_id=run.id,
        path=step.node.path,
        since_epoch=run.epoch,
    )
    if earlier is None:
        return None
    if earlier.effect_state == "confirmed":
        note = f"Run {earlier.run_id} has done this: it wasn't sent again."
        return Outcome.done({**(earlier.output or {}), "note": note})
    if step.node.effect == Effect.AT_MOST_ONCE:
        return Outcome.uncertain(f"Run {earlier.run_id} may have sent this already.")
    return None
