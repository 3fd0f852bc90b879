"""The states of runs and steps, the moves between them, the kinds of timers, and the reason codes."""

from collections.abc import Mapping
from enum import StrEnum

RUN_MOVES: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"running", "waiting", "paused", "succeeded", "failed", "cancelled", "suppressed"}),
    "running": frozenset({"waiting", "paused", "succeeded", "failed", "cancelled", "compensating"}),
    "waiting": frozenset({"running", "paused", "succeeded", "failed", "cancelled", "compensating"}),
    "paused": frozenset({"pending", "running", "waiting", "succeeded", "failed", "cancelled"}),
    "compensating": frozenset({"compensated", "compensation_failed"}),
    "compensation_failed": frozenset({"compensating", "compensated", "cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "compensated": frozenset(),
    "suppressed": frozenset(),
}
STEP_MOVES: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"running", "retrying", "waiting", "succeeded", "failed", "skipped", "cancelled", "dead"}),
    "running": frozenset({"pending", "retrying", "waiting", "succeeded", "failed", "skipped", "cancelled", "dead"}),
    "retrying": frozenset({"running", "succeeded", "failed", "skipped", "cancelled", "dead"}),
    "waiting": frozenset({"running", "succeeded", "failed", "skipped", "cancelled", "dead"}),
    "succeeded": frozenset({"compensated"}),
    "failed": frozenset(),
    "skipped": frozenset(),
    "cancelled": frozenset(),
    "dead": frozenset(),
    "compensated": frozenset(),
}
# What only a person's verb may do, beyond the moves above: each says so in its audit entry.
OPERATOR_RUN_MOVES: Mapping[str, frozenset[str]] = {
    "failed": frozenset({"running", "waiting", "succeeded", "cancelled", "compensating"}),
}
OPERATOR_STEP_MOVES: Mapping[str, frozenset[str]] = {
    "dead": frozenset({"pending", "running", "retrying", "succeeded", "skipped", "cancelled"}),
    "failed": frozenset({"pending", "succeeded", "skipped"}),
}
RUN_STATES: tuple[str, ...] = tuple(RUN_MOVES)
STEP_STATES: tuple[str, ...] = tuple(STEP_MOVES)
# Runs that have something before them, and that a verb may still stop.
LIVE_RUN: tuple[str, ...] = ("pending", "running", "waiting", "paused")
TERMINAL_RUN: frozenset[str] = frozenset(state for state, moves in RUN_MOVES.items() if not moves)
# Runs that haven't ended: live ones, and those that are being compensated or wait for a person to do it.
UNDER_WAY: tuple[str, ...] = tuple(state for state, moves in RUN_MOVES.items() if moves)
TERMINAL_STEP: frozenset[str] = frozenset({"succeeded", "failed", "skipped", "cancelled", "dead", "compensated"})
TIMER_KINDS: tuple[str, ...] = (
    "match",
    "step",
    "retry",
    "delay",
    "wait_timeout",
    "schedule",
    "compensation",
    "deliver",
)
# A bulk job: at work, through, stopped because too many failed again, or ended by a person.
BULK_STATES: tuple[str, ...] = ("running", "finished", "stopped", "cancelled")
BACKTEST_STATES: tuple[str, ...] = ("queued", "running", "done", "cancelled", "failed")
LIVE_BACKTEST: tuple[str, ...] = ("queued", "running")
TIMER_STATES: tuple[str, ...] = ("pending", "leased", "held")
# How sure we are of an outside effect: not begun, about to be sent, known to have happened, or perhaps.
EFFECT_STATES: tuple[str, ...] = ("none", "intended", "confirmed", "uncertain")
# An attempt is written open (empty) and closed once.
ATTEMPT_OUTCOMES: tuple[str, ...] = ("", "ok", "failed", "timeout", "lost", "cancelled")


class Reason(StrEnum):
    """Why something didn't run, ended or waits; shared by database, API, screens and metrics."""

    NOT_MATCHED = "not_matched"
    UNKNOWN_FIELD = "unknown_field"
    BROKEN_REFERENCE = "broken_reference"
    LOOP_SAME_RULE = "loop_same_rule"
    LOOP_DEPTH = "loop_depth"
    LOOP_BUDGET = "loop_budget"
    RATE = "rate"
    PAUSED = "paused"
    RULE_OFF = "rule_off"
    ALREADY_WAITING = "already_waiting"
    SUPERSEDED = "superseded"
    LIMIT_PER_RECORD = "limit_per_record"
    LIMIT_PER_RECIPIENT = "limit_per_recipient"
    STOPPED_BY_RULE = "stopped_by_rule"
    EPISODE_MOVED = "episode_moved"
    RECORD_GONE = "record_gone"
    EXPIRED = "expired"
    TENANT_BUSY = "tenant_busy"
    ENDPOINT_DOWN = "endpoint_down"
    IMPORT_SKIPPED = "import_skipped"
    OWNER_GONE = "owner_gone"
    NO_ASSIGNEE = "no_assignee"
    OPTED_OUT = "opted_out"
    SELF_ADDRESS = "self_address"
    AUTO_SUBMITTED = "auto_submitted"
    NO_BUSINESS_TIME = "no_business_time"
    TEMPLATE_ERROR = "template_error"
    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    DELIVERY_UNKNOWN = "delivery_unknown"
    POISON = "poison"
    DEADLINE = "deadline"
    CANCELLED_BY = "cancelled_by"
    BY_HAND = "by_hand"


def may_move(moves: Mapping[str, frozenset[str]], state: str, to: str) -> bool:
    """Whether the table allows the move; an unknown state allows none."""
    return to in moves.get(state, frozenset())


def sources_of(moves: Mapping[str, frozenset[str]], to: str) -> tuple[str, ...]:
    """The states from which a move leads to `to`: the `state IN (…)` of a guarded write."""
    return tuple(state for state, targets in moves.items() if to in targets)
