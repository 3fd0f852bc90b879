"""Ends a pause, and does with what it held as asked: all of it, only the recent, or nothing, at once or at a rate."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.operate import Refused, pause
from automation.engine.operate.pause import Choice
from automation.management import pausing
from automation.management.arguments import add_dry_run, add_json, misused, write_json
from automation.management.naming import span

ABOUT = __doc__

EVERY = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    """`manage.py automation_resume --tenant acme --rate 50/s --recent 2h --follow`."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose, what becomes of what was held, and how fast."""
        pausing.add_target(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--recent", metavar="SPAN", help="drop what is older than 2h; the rest goes on")
        what.add_argument("--drop", action="store_true", help="drop all of it: events unseen, waiting runs cancelled")
        parser.add_argument("--rate", metavar="RATE", help="how fast it goes on: 50/s, 600/m; without it at once")
        parser.add_argument("--follow", action="store_true", help="say what is left until all of it is done")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints how it stands then; while a drip is under way, it gives that another rate or end."""
        choice = Choice(
            keep="drop" if options["drop"] else "recent" if options["recent"] else "all",
            recent_minutes=_minutes(options["recent"]),
            rate=pausing.whole_rate(options["rate"]),
        )
        if options["dry_run"]:
            _check(choice)
        with pausing.target(options) as (scope, subject_id):
            if not options["dry_run"]:
                self._do(scope, subject_id, choice, follow=options["follow"])
            found = pausing.state(scope, subject_id)
            if options["dry_run"]:
                found["would"] = pausing.would(scope, subject_id, choice)
        if options["json"]:
            write_json(self.stdout, found)
            return
        pausing.say(self.stdout, found)
        if scope == "rule" and found.get("off"):
            self.stdout.write("The rule is off: what it holds goes on, at once, when it is switched on.")
        if options["dry_run"]:
            pausing.say_would(self.stdout, found["would"])

    def _do(self, scope: str, subject_id: int | None, choice: Choice, *, follow: bool) -> None:
        try:
            _resume(scope, subject_id, choice)
        except Refused as refusal:
            raise CommandError(str(refusal)) from refusal
        if follow:
            self._follow(scope, subject_id)

    def _follow(self, scope: str, subject_id: int | None) -> None:
        """Progress to stderr. Stopping it with Ctrl-C stops nothing else."""
        while (found := pausing.state(scope, subject_id))["pause"] or found.get("dripping"):
            left = found.get("dripping")
            if left:
                self.stderr.write(f"left: {left['steps']} steps, {left['events']} events, {pausing.pace(left['rate'])}")
            elif found["pause"]["resumed_at"]:
                self.stderr.write("the pause is being ended")
            else:
                return  # another one
            time.sleep(EVERY)


def _resume(scope: str, subject_id: int | None, choice: Choice) -> None:
    if scope == "tenant":
        pause.resume(choice)
    elif scope == "installation":
        pause.resume_installation(choice)
    elif scope == "rule":
        pause.resume_rule(subject_id or 0, choice)
    else:
        pause.resume_connection(subject_id or 0, choice)


def _check(choice: Choice) -> None:
    try:
        choice.check()
    except Refused as refusal:
        raise CommandError(str(refusal)) from refusal


def _minutes(text: str | None) -> int | None:
    """How young is recent, in whole minutes; an error for less than one."""
    if text is None:
        return None
    minutes = round(span(text).total_seconds() / 60)
    if minutes < 1:
        raise misused(f"--recent is a minute at least, not {text!r}: to drop all of it, say --drop.")
    return minutes
