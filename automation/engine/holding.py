"""Says why a claimed step must not be executed now: nothing to do, cancelled, over, or held by somebody."""

from dataclasses import dataclass

from automation.core.states import TERMINAL_RUN, TERMINAL_STEP
from automation.engine.progress import RunInHand
from automation.store.runs import RunRow, StepRow

PUT_OFF = 30.0  # seconds until work that somebody holds is looked at again


@dataclass(frozen=True, slots=True)
class PutBack:
    """The timer goes back as it is, due again after so many seconds; the run shows the reason.

    `hold`: it is held, for the run was paused by itself. `shelf`: it is held until that ("rule" or "connection", id)
    may go on; the seconds count where that is being decided at this moment. `place`: it is due as soon as that
    connection has one for it; the seconds count where the giving back is missed.
    """

    seconds: float
    reason: str = ""
    hold: bool = False
    shelf: tuple[str, int] | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """There is nothing to do any more: the timer goes."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Somebody asked to stop the run, deleted its rule, or its time is over, and this is its next check."""

    state: str = "cancelled"
    reason: str = "cancelled_by"


def as_asked(run: RunRow) -> Cancel:
    """How a run ends that is to be cancelled, and its step with it: a newer run's doing is nobody's."""
    return Cancel(reason="superseded") if run.reason == "superseded" else Cancel()


def is_to_end(run: RunRow, hand: RunInHand | None) -> bool:
    """Whether somebody asked to cancel the run, or deleted its rule: then it doesn't go on, and fails no more."""
    return run.cancel_requested_at is not None or (hand is not None and run.rule_id in hand.tenant.deleted_rules)


def held_back(
    run: RunRow, hand: RunInHand | None, step: StepRow | None, *, lane_paused: bool
) -> PutBack | Drop | Cancel | None:
    """Why a claimed step must not be executed now, or None when it may.

    `hand` is None where this process can't read the run's version, or finds no such step in it: then it waits.
    """
    if step is None or run.state in TERMINAL_RUN or step.state in TERMINAL_STEP:
        return Drop()
    if is_to_end(run, hand):
        return as_asked(run)
    if run.expired:
        return Cancel("failed", "expired")
    if lane_paused or run.state == "paused":
        return PutBack(0.0, hold=run.state == "paused")
    if hand is None:
        return PutBack(PUT_OFF, "broken_reference")
    if run.rule_id in hand.tenant.paused_rules:
        return PutBack(PUT_OFF, "paused", shelf=("rule", run.rule_id))
    if run.rule_id in hand.tenant.held_rules:
        return PutBack(PUT_OFF, "rule_off", shelf=("rule", run.rule_id))
    return None
