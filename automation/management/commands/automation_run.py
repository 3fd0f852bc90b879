"""Shows, cancels, pauses, resumes, replays or wakes one run."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from automation.engine.operate import runs
from automation.engine.operate.leaving import left_behind
from automation.engine.operate.replay import replay
from automation.engine.operate.runs import Cancelled
from automation.engine.operate.waking import wake
from automation.management.arguments import add_reason, misused, row
from automation.management.verbs import VerbCommand
from automation.models import Run, StepExecution

ABOUT = __doc__

VERBS = ("show", "cancel", "pause", "resume", "replay", "wake")


class Command(VerbCommand):
    """`manage.py automation_run replay 12 --tenant acme --from page`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """The verb, the run, and how it is replayed."""
        parser.add_argument(
            "verb", choices=VERBS, help="show says how its steps are, and what cancelling leaves behind"
        )
        parser.add_argument("run", type=row, metavar="RUN", help="its number")
        parser.add_argument("--from", dest="step", default="", metavar="STEP", help="replay: from this step on")
        parser.add_argument("--live", action="store_true", help="replay: with the version that is live now")
        parser.add_argument("--as-new", action="store_true", help="replay: send everything again under new keys")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Does the verb; answers the run as it is afterwards, and what came of it."""
        if options["verb"] != "replay" and (options["step"] or options["live"] or options["as_new"]):
            raise misused("--from, --live and --as-new go with replay.")
        run_id, reason, more = options["run"], options["reason"], dict[str, Any]()
        if options["verb"] == "cancel":
            done = runs.cancel(run_id, reason)
            more = {**asdict(done), "changed": done != Cancelled()}
        elif options["verb"] == "replay":
            step, live = options["step"], options["live"]
            more = {"new_run": replay(run_id, step=step, live=live, as_new=options["as_new"], reason=reason)}
        elif options["verb"] == "show":
            more = {"steps": _steps(run_id), **asdict(left_behind(run_id))}
        else:
            changed = {"pause": runs.pause, "resume": runs.resume, "wake": wake}[options["verb"]](run_id, reason)
            more = {"changed": changed is not False}
        run = Run.objects.get(pk=run_id)
        return {"run": run.pk, "state": run.state, "reason": run.reason, **more}

    def missing(self, options: dict[str, Any]) -> str:
        """Runs go with retention."""
        return f"There is no run {options['run']} of this tenant."

    def say(self, answer: Any) -> Iterable[str]:
        """One line, and one for everything that would be left behind."""
        already = " (already so: nothing was changed)" if answer.get("changed") is False else ""
        yield f"Run {answer['run']}: {answer['state']} {answer['reason']}".strip() + already
        for step in answer.get("steps", ()):
            yield f"  step {step['step']} {step['path']}: {step['state']} {step['reason']}".rstrip()
        if "new_run" in answer:
            yield f"Replayed as run {answer['new_run']}."
        if answer.get("asked"):
            yield "A worker is on it, which ends it as soon as its step returns."
        for name in ("done", "skipped", "under_way", "uncertain", "never"):
            if answer.get(name):
                yield f"{name.replace('_', ' ')}: {', '.join(answer[name])}"


def _steps(run_id: int) -> list[dict[str, Any]]:
    """The steps with the numbers by which `automation_step` takes them."""
    steps = StepExecution.objects.filter(run_id=run_id).order_by("id").values("pk", "path", "state", "reason")
    return [{"step": one["pk"], **{name: one[name] for name in ("path", "state", "reason")}} for one in steps]
