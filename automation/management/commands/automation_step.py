"""Completes a step by hand, or skips it."""

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from automation.engine.operate import steps
from automation.management.arguments import add_reason, misused, row
from automation.management.verbs import VerbCommand, object_of
from automation.models import StepExecution

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_step complete 340 --tenant acme --output '{"status": 200}'`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """The verb, the step, and what it put out."""
        parser.add_argument("verb", choices=("complete", "skip"))
        parser.add_argument("step", type=row, metavar="STEP", help="its number, as automation_run show has it")
        parser.add_argument("--output", metavar="JSON", help="complete: what later steps read as its output")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the step and its run as they are afterwards."""
        if options["verb"] != "complete" and options["output"] is not None:
            raise misused("--output goes with complete: a step that is skipped puts nothing out.")
        output = object_of(options["output"], "--output")
        if options["verb"] == "complete":
            done = steps.complete(options["step"], output=output, reason=options["reason"])
        else:
            done = steps.skip(options["step"], reason=options["reason"])
        step = StepExecution.objects.select_related("run").get(pk=options["step"])
        return {
            "step": step.pk,
            "done": done,
            "path": step.path,
            "state": step.state,
            "run": step.run_id,
            "run_state": step.run.state,
        }

    def missing(self, options: dict[str, Any]) -> str:
        """Of steps, only the numbers that `automation_run show` prints are meant."""
        return f"There is no step {options['step']} of this tenant: automation_run show RUN has the numbers."

    def say(self, answer: Any) -> Iterable[str]:
        """One line."""
        already = "" if answer["done"] else ", which somebody has done by hand already"
        yield f"Step {answer['path']}: {answer['state']}{already}; run {answer['run']}: {answer['run_state']}"
