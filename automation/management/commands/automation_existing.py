"""Has a rule run for the records that it concerns already, at a pace, says how far it has come, or stops it."""

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from automation.engine import rules
from automation.management.arguments import add_reason
from automation.management.naming import a_minute, rule_named
from automation.management.verbs import VerbCommand

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_existing RULE --tenant acme --rate 60/m` begins, `--stop` ends it."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """Which rule, and what to do."""
        parser.add_argument("rule", help="its number or name")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--rate", metavar="RATE", help="run for them this fast, 60/m; also changes the rate")
        what.add_argument("--stop", action="store_true", help="leave the others alone")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Does what it is told, and answers how far it has come; None where the rule takes up nothing."""
        rule, rate = rule_named(options["rule"]), a_minute(options["rate"])
        if rate is not None:
            rules.take_up(rule.pk, rate=rate, reason=options["reason"])
        if options["stop"]:
            rules.stop_taking_up(rule.pk, reason=options["reason"])
        state = rules.TakingUp.of(rules.find(rule.pk))
        return state.kept() if state else None

    def rehearse(self, options: dict[str, Any]) -> Any:
        """The same, with how many records there are."""
        answer = super().rehearse(options)
        if answer is None:
            return None
        concerned = rules.concerned(rule_named(options["rule"]).pk)
        return answer | {"concerns": concerned.sentences(answer["rate"]) if concerned else []}

    def say(self, answer: Any) -> Iterable[str]:
        """How far it has come."""
        if answer is None:
            yield "It takes up no records."
            return
        yield (
            f"{answer['posted']} records so far, {answer['rate']:g} a minute; seen to up to number {answer['last']}"
            f" of {answer['until']}."
        )
        yield from answer.get("concerns", ())
