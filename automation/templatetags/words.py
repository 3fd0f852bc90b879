"""The words, icons and tones in which every screen shows states and reasons."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrPromise

from automation.core.states import Reason


@dataclass(frozen=True, slots=True)
class Word:
    """How one state is shown: a word, the name of an icon, and a tone that CSS knows ("ok", "error", …)."""

    text: StrPromise
    icon: str
    tone: str


RUNNING = Word(_("Running"), "run", "info")
WAITING = Word(_("Waiting"), "clock", "waiting")
RETRYING = Word(_("Retrying"), "again", "waiting")
HELD = Word(_("Held"), "hold", "warn")
DONE = Word(_("Done"), "check", "ok")
FAILED = Word(_("Failed"), "cross", "error")
CANCELLED = Word(_("Cancelled"), "ban", "quiet")
UNDOING = Word(_("Undoing"), "undo", "waiting")
UNDONE = Word(_("Undone"), "undo", "quiet")
LOOP = Word(_("Stopped by loop protection"), "shield", "warn")
NOT_STARTED = Word(_("Not started"), "dash", "quiet")
SKIPPED = Word(_("Skipped"), "dash", "quiet")
NOT_REACHED = Word(_("Not reached"), "dash", "quiet")
UNKNOWN = Word(_("Unknown"), "alert", "warn")
RULE_ON = Word(_("On"), "check", "ok")
RULE_OFF = Word(_("Off"), "stop", "quiet")
RULE_HELD = Word(_("On, but paused"), "hold", "warn")

RUN_WORDS = {
    "pending": RUNNING,
    "running": RUNNING,
    "waiting": WAITING,
    "paused": HELD,
    "succeeded": DONE,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "compensating": UNDOING,
    "compensated": UNDONE,
    "compensation_failed": FAILED,
    "suppressed": NOT_STARTED,
}
STEP_WORDS = {
    "not_reached": NOT_REACHED,
    "pending": RUNNING,
    "running": RUNNING,
    "retrying": RETRYING,
    "waiting": WAITING,
    "succeeded": DONE,
    "failed": FAILED,
    "skipped": SKIPPED,
    "cancelled": CANCELLED,
    "dead": FAILED,
    "compensated": UNDONE,
}
ATTEMPT_WORDS = {
    "": RUNNING,
    "ok": DONE,
    "failed": FAILED,
    "timeout": Word(_("Timed out"), "clock", "error"),
    "lost": Word(_("Lost"), "alert", "warn"),
    "cancelled": CANCELLED,
}
RESULT_WORDS = {
    "true": Word(_("True"), "check", "ok"),
    "false": Word(_("False"), "cross", "error"),
    "unknown": UNKNOWN,
    "not_needed": Word(_("Not needed"), "dash", "quiet"),
}
CHANGE_WORDS = {
    "added": Word(_("Added"), "plus", "ok"),
    "removed": Word(_("Removed"), "dash", "error"),
    "changed": Word(_("Changed"), "edit", "info"),
    "moved": Word(_("Moved"), "up", "quiet"),
}
OPERATOR_WORDS: "dict[str, StrPromise]" = {
    "is": _("is"),
    "is_not": _("is not"),
    "is_exactly": _("is exactly"),
    "in": _("is one of"),
    "not_in": _("is none of"),
    "contains": _("contains"),
    "not_contains": _("does not contain"),
    "starts_with": _("starts with"),
    "gt": _("is greater than"),
    "gte": _("is at least"),
    "lt": _("is less than"),
    "lte": _("is at most"),
    "is_empty": _("is empty"),
    "is_not_empty": _("is not empty"),
    "has_any": _("has any of"),
    "has_all": _("has all of"),
    "has_none": _("has none of"),
    "is_exactly_set": _("is exactly"),
    "changed": _("changed"),
    "changed_to": _("changed to"),
    "changed_from": _("changed from"),
    "changed_from_to": _("changed from … to"),
    "was": _("was"),
    "rises_above": _("rises above"),
    "falls_below": _("falls below"),
    "before": _("is before"),
    "after": _("is after"),
    "is_today": _("is today"),
    "older_than": _("is longer ago than"),
    "within_last": _("lies within the last"),
    "within_next": _("lies within the next"),
    "is_ago": _("is so many days ago:"),
    "is_ahead": _("is so many days ahead:"),
}
LEAF_REASON_WORDS: dict[str, StrPromise] = {
    "unknown_operator": _("this comparison no longer exists"),
    "unknown_field": _("this field was not in the event"),
    "unfit_value": _("the value read has another type"),
    "no_value": _("there is no value"),
    "erased": _("the values were erased"),
    "cut": _("only the first 8 KB of the text were judged"),
}
VERB_WORDS: dict[str, StrPromise] = {
    "cancel": _("cancelled it"),
    "retry": _("retried the failed step"),
    "discard": _("gave the failed step up"),
    "complete": _("completed a step by hand"),
    "skip": _("skipped a step"),
    "pause": _("paused the run"),
    "resume": _("let the run go on"),
    "postpone": _("put a step off"),
    "run_now": _("made a waiting step due at once"),
    "replay": _("replayed the run"),
    "wake": _("woke the run"),
}
HELD_REASONS = frozenset({Reason.PAUSED, Reason.RULE_OFF})
LOOP_REASONS = frozenset({Reason.LOOP_SAME_RULE, Reason.LOOP_DEPTH, Reason.LOOP_BUDGET, Reason.RATE})
STILL_GOING = frozenset({"pending", "running", "waiting"})

REASON_WORDS: dict[str, StrPromise] = {
    Reason.NOT_MATCHED: _("The conditions did not match"),
    Reason.UNKNOWN_FIELD: _("A field that the rule reads no longer exists"),
    Reason.BROKEN_REFERENCE: _("Something that the rule uses no longer exists"),
    Reason.LOOP_SAME_RULE: _("The rule had already run for this record in the same chain"),
    Reason.LOOP_DEPTH: _("The chain of rules that start each other was too long"),
    Reason.LOOP_BUDGET: _("One change had already started too many runs"),
    Reason.RATE: _("The rule ran too often in a short time"),
    Reason.PAUSED: _("Held by a pause"),
    Reason.RULE_OFF: _("Held because the rule is off"),
    Reason.ALREADY_WAITING: _("A run of this rule waits already for this record"),
    Reason.SUPERSEDED: _("Replaced by a newer run of the same rule"),
    Reason.LIMIT_PER_RECORD: _("The limit of runs for this record was reached"),
    Reason.LIMIT_PER_RECIPIENT: _("The limit of messages to this person was reached"),
    Reason.STOPPED_BY_RULE: _("An earlier rule stopped the later ones"),
    Reason.EPISODE_MOVED: _("What it waited for has moved"),
    Reason.RECORD_GONE: _("The record was deleted"),
    Reason.EXPIRED: _("It outlived its longest life"),
    Reason.TENANT_BUSY: _("Too much work waits already"),
    Reason.ENDPOINT_DOWN: _("The other system does not answer"),
    Reason.IMPORT_SKIPPED: _("The rule leaves imported records out, or had its run for this import"),
    Reason.OWNER_GONE: _("The rule's owner has left"),
    Reason.NO_ASSIGNEE: _("Nobody was there to assign to"),
    Reason.OPTED_OUT: _("The recipient does not want such mail"),
    Reason.SELF_ADDRESS: _("The recipient is our own address"),
    Reason.AUTO_SUBMITTED: _("It answers an automatic message"),
    Reason.NO_BUSINESS_TIME: _("The calendar has no open hours"),
    Reason.TEMPLATE_ERROR: _("A text could not be filled in"),
    Reason.REJECTED: _("The other system refused it for good"),
    Reason.EXHAUSTED: _("Every attempt failed"),
    Reason.DELIVERY_UNKNOWN: _("Nobody knows whether it arrived"),
    Reason.POISON: _("It stopped the worker again and again"),
    Reason.DEADLINE: _("It took too long"),
    Reason.CANCELLED_BY: _("Cancelled by a person"),
    Reason.BY_HAND: _("Done by a person"),
}


def run_word(state: str, reason: str = "") -> Word:
    """The word for a run: what waits under a pause is held, what the loop guard stopped says so."""
    if state in STILL_GOING and reason in HELD_REASONS:
        return HELD
    if state == "suppressed" and reason in LOOP_REASONS:
        return LOOP
    return RUN_WORDS.get(state, UNKNOWN)


def step_word(state: str, reason: str = "") -> Word:
    """The word for a step; of which "not_reached" means that the run did not come to it."""
    if state in {"pending", "waiting", "retrying"} and reason in HELD_REASONS:
        return HELD
    return STEP_WORDS.get(state, UNKNOWN)
