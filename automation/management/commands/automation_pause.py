"""Pauses a tenant, a rule, a connection or the whole installation, or shows how a pause stands and what it holds."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.operate import Refused, pause
from automation.management import pausing
from automation.management.arguments import add_dry_run, add_json, misused, write_json
from automation.management.naming import moment, span

ABOUT = __doc__

LOOK = 0.2


class Command(BaseCommand):
    """`manage.py automation_pause --tenant acme --reason "The pager is broken" --until 2h --rate 50/s`."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose, how much, why, until when, and how it goes on then."""
        pausing.add_target(parser)
        parser.add_argument(
            "--level",
            choices=["new", "hold", "cancel"],
            default="hold",
            help="new runs only, running ones held at their next step as well, or everything cancelled",
        )
        parser.add_argument("--reason", help="everybody in the tenant sees it")
        parser.add_argument("--until", metavar="WHEN", help="go on by itself: 2h, or 2026-11-03T12:00:00+01:00")
        parser.add_argument("--rate", metavar="RATE", help="how fast what was held goes on then: 50/s, 600/m")
        parser.add_argument("--wait", metavar="SPAN", help="until no step runs any more, so long at most: 60s")
        parser.add_argument("--show", action="store_true", help="pause nothing: show how it stands and what is held")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints how it stands; exit code 1 where `--wait` ended before every worker had confirmed."""
        # Read before anything is done: a pause whose wait can't be read would stand, and look as if it didn't.
        until, rate = moment(options["until"]), pausing.whole_rate(options["rate"])
        longest = span(options["wait"]) if options["wait"] is not None else None
        with pausing.target(options) as (scope, subject_id):
            if not (options["show"] or options["dry_run"]):
                self._pause(scope, subject_id, options, until=until, rate=rate)
            confirmed = options["dry_run"] or self._wait(scope, subject_id, longest)
            self._say(scope, subject_id, options)
        if not confirmed:
            raise CommandError("Not every worker has confirmed the pause yet.")

    def _pause(
        self,
        scope: str,
        subject_id: int | None,
        options: dict[str, Any],
        *,
        until: datetime | None,
        rate: int | None,
    ) -> None:
        if not options["reason"]:
            raise misused("Say why with --reason: people who look here later need it.")
        level, reason = options["level"], options["reason"]
        try:
            if scope == "tenant":
                pause.pause(level=level, reason=reason, until=until, rate=rate)
            elif scope == "installation":
                pause.pause_installation(level=level, reason=reason, until=until, rate=rate)
            elif scope == "rule":
                pause.pause_rule(subject_id or 0, reason, level=level, until=until, rate=rate)
            elif level == "hold":
                pause.pause_connection(subject_id or 0, reason, until=until, rate=rate)
            else:
                raise misused("A connection is paused at the level hold only.")
        except (Refused, ValueError) as error:
            raise CommandError(str(error)) from error

    def _wait(self, scope: str, subject_id: int | None, longest: timedelta | None) -> bool:
        if longest is None:
            return True
        ends_at = time.monotonic() + longest.total_seconds()
        while pausing.state(scope, subject_id)["state"] == "pausing":
            if time.monotonic() > ends_at:
                return False
            time.sleep(LOOK)
        return True

    def _say(self, scope: str, subject_id: int | None, options: dict[str, Any]) -> None:
        found = pausing.state(scope, subject_id)
        held = pausing.held(scope, subject_id) if options["show"] else None
        if options["dry_run"]:
            found["would"] = pausing.concerns(scope, subject_id)
        if options["json"]:
            write_json(self.stdout, found | ({"held": held} if held else {}))
            return
        pausing.say(self.stdout, found)
        if held:
            pausing.say_held(self.stdout, held)
        if options["dry_run"]:
            pausing.say_would(self.stdout, found["would"], "concern")
