"""Says how far jobs on many dead letters have come, waits for one, or ends it."""

import time
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from automation.engine.operate import bulk
from automation.engine.operate.bulk import BulkStatus
from automation.management.arguments import add_reason, misused, row
from automation.management.verbs import VerbCommand
from automation.models import BulkJob

ABOUT = __doc__

LISTED = 20
VERBS = ("list", "status", "wait", "cancel")


class Command(VerbCommand):
    """`manage.py automation_bulk wait 3 --tenant acme`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """The verb and the job."""
        parser.add_argument("verb", choices=VERBS, help="wait prints how far it is until it has ended")
        parser.add_argument("job", type=row, nargs="?", metavar="JOB", help="its number; none for list")
        add_reason(parser)

    def rehearse(self, options: dict[str, Any]) -> Any:
        """The job as cancelling it would leave it."""
        if options["verb"] != "cancel":
            raise misused("--dry-run goes with cancel: the other verbs change nothing anyway.")
        return super().rehearse(options)

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the jobs, newest first, or one."""
        if options["verb"] == "list":
            newest = BulkJob.objects.order_by("-id").values_list("pk", flat=True)[:LISTED]
            return [_plain(bulk.status(job_id)) for job_id in newest]
        if options["job"] is None:
            raise misused("Name a job: automation_bulk list has the numbers.")
        more: dict[str, Any] = {}
        if options["verb"] == "cancel":
            more = {"taken_back": bulk.cancel(options["job"], options["reason"])}
        while options["verb"] == "wait":
            found = bulk.status(options["job"])
            if found.job.state != "running" and not found.job.taking_back:
                break
            self.stderr.write(_line(_plain(found)))
            time.sleep(1)
        return [{**_plain(bulk.status(options["job"])), **more}]

    def missing(self, options: dict[str, Any]) -> str:
        """Of jobs, the numbers that the list prints are meant."""
        return f"There is no job {options['job']} of this tenant."

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each job, and one for each reason why letters were refused."""
        for one in answer:
            yield _line(one)
            if "taken_back" in one:
                yield f"  {one['taken_back']} that nobody had begun are dead letters again"
            for sentence, count in one["refusals"].items():
                yield f"  {count} x {sentence}"
        if not answer:
            yield "There was no job yet."


def _plain(found: BulkStatus) -> dict[str, Any]:
    job = found.job
    names = ("verb", "filters", "rate", "most", "stop_after", "state", "refused", "actor")
    counts = {name: getattr(found, name) for name in ("tried", "in_line", "left", "failed_again", "refusals")}
    return {"job": job.pk} | counts | {name: getattr(job, name) for name in names}


def _line(one: dict[str, Any]) -> str:
    tried = "done" if one["verb"] == "discard" else "tried"
    return (
        f"Job {one['job']} {one['verb']}: {one['state']}, {one['tried']} {tried},"
        f" {one['in_line']} in line, {one['left']} left,"
        f" {one['refused']} refused, {one['failed_again']} failed again"
    )
