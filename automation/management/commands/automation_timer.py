"""Lists what waits, puts it off, makes it due now, or cancels it."""

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from automation.engine.operate import timers
from automation.engine.waits import waits
from automation.management.arguments import add_reason, add_rule, misused, row
from automation.management.naming import moment, record_named, rule_named
from automation.management.verbs import VerbCommand

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_timer postpone 77 --tenant acme --until 2026-03-02T09:00+01:00`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """The verb and the timer; for a list, of which record, rule or run."""
        parser.add_argument("verb", choices=("list", "postpone", "run-now", "cancel"))
        parser.add_argument("timer", type=row, nargs="?", help="its number in the list")
        parser.add_argument("--step", type=row, metavar="NUMBER", help="the step that was seen: another one is refused")
        parser.add_argument("--until", metavar="WHEN", help="postpone: 2h, or 2026-03-02T09:00+01:00")
        parser.add_argument("--run", type=row, metavar="NUMBER", help="list: of this run")
        add_rule(parser, "list: of this rule")
        parser.add_argument("--record", metavar="MODEL:ID", help="list: of this record, such as helpdesk.ticket:12")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the list, or what was done."""
        if options["verb"] == "list":
            model, record = record_named(options["record"]) if options["record"] else ("", None)
            rule_id = rule_named(options["rule"]).pk if options["rule"] else None
            found = waits(run_id=options["run"], rule_id=rule_id, model=model, record=record)
            return [one.to_json() for one in found]
        timer_id, about = options["timer"], {"step_id": options["step"], "reason": options["reason"]}
        if timer_id is None:
            raise misused("Name a timer: automation_timer list has the numbers.")
        if options["verb"] == "postpone":
            until = moment(options["until"])
            if until is None:
                raise misused("Say --until when.")
            changed = timers.postpone(timer_id, until=until, **about)
        elif options["verb"] == "run-now":
            changed = timers.run_now(timer_id, **about)
        else:
            changed = bool(timers.cancel(timer_id, **about))
        return {"timer": timer_id, "done": options["verb"], "changed": changed}

    def missing(self, options: dict[str, Any]) -> str:
        """A timer goes with what it stood for."""
        return f"There is no timer {options['timer']} of this tenant: what it stood for was done or cancelled."

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each timer."""
        if isinstance(answer, dict):
            already = "" if answer["changed"] else " (already so: nothing was changed)"
            yield f"Timer {answer['timer']}: {answer['done']}{already}"
            return
        for one in answer:
            yield (
                f"{one['timer']:>8} {one['kind']:8} {one['state']:8} {one['due_at']}"
                f"  run {one['run']} step {one['step']} ({one['path']})  {one['rule']}  {one['record']}"
            )
        if not answer:
            yield "Nothing waits."
