"""Says in one sentence what became of a run: the first thing that its page tells."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.engine.reports import StepReport
from automation.engine.trace import Trace

DONE_STEPS = frozenset({"succeeded", "compensated"})
FAILED_STEPS = frozenset({"failed", "dead"})
ERROR_SHOWN = 300


def headline(trace: Trace) -> str:
    """The answer in one sentence, without the word for the state, which stands before it."""
    if trace.state == "succeeded":
        return _succeeded(trace)
    if trace.state in {"failed", "compensation_failed"}:
        return _failed(trace)
    if trace.state == "cancelled":
        return _cancelled(trace)
    if trace.state == "suppressed":
        return _("Nothing was done.")
    return trace.waiting or _("It goes on in a moment.")


def _succeeded(trace: Trace) -> str:
    done = sum(step.state in DONE_STEPS for step in trace.steps)
    failed = sum(step.state in FAILED_STEPS for step in trace.steps)
    if failed:
        # They were told to go on where they fail.
        return ngettext(
            "%(n)d step failed, and the rule went on as it says; %(done)d done.",
            "%(n)d steps failed, and the rule went on as it says; %(done)d done.",
            failed,
        ) % {"n": failed, "done": done}
    if not done:
        return _("There was nothing to do.")
    return ngettext("%(n)d step is done.", "%(n)d steps are done.", done) % {"n": done}


def _failed(trace: Trace) -> str:
    step = next((step for step in reversed(trace.steps) if step.state in FAILED_STEPS), None)
    if step is None:
        return _("It failed before its first step.")
    error = _error(step)
    tries = len(step.attempts)
    if not error:
        return _("Step “%(step)s” failed.") % {"step": _name(step)}
    if tries <= 1:
        return _("Step “%(step)s” failed: %(error)s") % {"step": _name(step), "error": error}
    said = _("Step “%(step)s” failed after %(n)d attempts: %(error)s")
    return said % {"step": _name(step), "n": tries, "error": error}


def _cancelled(trace: Trace) -> str:
    person = next((entry for entry in reversed(trace.people) if entry.verb == "cancel"), None)
    if person is None or not person.actor_name:
        return _("It was ended before its last step.")
    if person.reason:
        return _("%(who)s cancelled it: %(reason)s") % {"who": person.actor_name, "reason": person.reason}
    return _("%(who)s cancelled it.") % {"who": person.actor_name}


def _name(step: StepReport) -> str:
    return step.action_label or step.id


def _error(step: StepReport) -> str:
    error = step.row.error.strip() if step.row else ""
    return error if len(error) <= ERROR_SHOWN else f"{error[:ERROR_SHOWN]}…"
