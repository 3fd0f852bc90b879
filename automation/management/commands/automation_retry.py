"""Retries dead letters: some by their numbers at once, or a group or all that fit at a pace, or gives them up."""

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from automation.engine.operate import Refused, bulk, fitting
from automation.engine.operate.dead_letters import discard, retry
from automation.management.arguments import add_reason, add_rule, at_least, misused, row
from automation.management.naming import a_minute, rule_named
from automation.management.verbs import VerbCommand
from automation.models import DeadLetter

ABOUT = __doc__

NARROWED = ("rule", "step", "code", "error", "most", "stop-after")


class Command(VerbCommand):
    """`manage.py automation_retry 4 5 --tenant acme`, `--group 4`, or `--all --rule 3 --rate 5/s --stop-after 10`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """Which, how, and how fast."""
        parser.add_argument("letters", type=row, nargs="*", metavar="NUMBER", help="of dead letters")
        parser.add_argument("--all", action="store_true", help="all open ones that fit, as a job of the workers")
        parser.add_argument(
            "--group", type=row, metavar="NUMBER", help="the same for all that fail like this letter: rule, step, error"
        )
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--as-new", action="store_true", help="under new keys: receivers take it for something else")
        how.add_argument("--discard", action="store_true", help="give them up: their runs stay failed")
        add_rule(parser, "those of this rule")
        parser.add_argument("--step", default="", help="the path of the dead step")
        parser.add_argument("--code", default="", help="the reason code, such as exhausted")
        parser.add_argument("--error", default="", help="all cases of this error; numbers in it don't matter")
        parser.add_argument("--rate", metavar="RATE", default="10/s", help="how fast: 5/s, 600/m (default %(default)s)")
        parser.add_argument("--most", type=at_least(1), help="so many at most")
        parser.add_argument("--stop-after", type=at_least(1), metavar="N", help="stop when N of them have failed again")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the job, or what became of each."""
        if [bool(options["letters"]), options["all"], options["group"] is not None].count(True) != 1:
            raise misused("Name dead letters, or a --group, or give --all.")
        narrowed = [name for name in NARROWED if options[name.replace("-", "_")]]
        if options["letters"] and narrowed:
            raise misused(f"--{narrowed[0]} goes with --all: dead letters that are named are all meant.")
        verb = "discard" if options["discard"] else "retry_as_new" if options["as_new"] else "retry"
        if options["letters"]:
            return [_one(letter, verb, options["reason"]) for letter in dict.fromkeys(options["letters"])]
        job = bulk.start(
            verb,
            **_which(options),
            rate=(a_minute(options["rate"]) or 0) / 60,
            most=options["most"],
            stop_after=options["stop_after"],
            reason=options["reason"],
        )
        left = fitting.count(job.filters)
        return {"job": job.pk, "left": left if job.most is None else min(left, job.most), "rate": job.rate}

    def missing(self, options: dict[str, Any]) -> str:
        """Only the letter of a group may be missing: others are told of one by one."""
        return f"There is no dead letter {options['group']} of this tenant."

    def tell(self, answer: Any, options: dict[str, Any]) -> None:
        """Prints the answer; CommandError where one was refused."""
        super().tell(answer, options)
        refused = 0 if isinstance(answer, dict) else sum(bool(one["refused"]) for one in answer)
        if refused:
            raise CommandError(f"{refused} of {len(answer)} were refused.")

    def say(self, answer: Any) -> Iterable[str]:
        """One line for the job, or for each letter."""
        if isinstance(answer, dict):
            yield f"Job {answer['job']}: {answer['left']} at {answer['rate']:g} a second. See automation_bulk."
            return
        for one in answer:
            yield f"Dead letter {one['letter']}: {one['refused'] or ('done' if one['done'] else 'was done already')}"


def _which(options: dict[str, Any]) -> dict[str, Any]:
    """Those that a job is for: the group of a letter, or what fits all that was named."""
    named = [name for name in ("rule", "step", "code", "error") if options[name]]
    if options["group"] is None:
        rule = rule_named(options["rule"], deleted=True).pk if options["rule"] else None
        return {"rule_id": rule, "step": options["step"], "reason_code": options["code"], "error": options["error"]}
    if named:
        raise misused(f"A group has its rule, step, code and error: leave out --{named[0]}.")
    return fitting.like(options["group"])


def _one(letter_id: int, verb: str, reason: str) -> dict[str, Any]:
    done, refused = False, ""
    try:
        if verb == "discard":
            done = discard(letter_id, reason=reason)
        else:
            done = retry(letter_id, as_new=verb == "retry_as_new", reason=reason)
    except Refused as refusal:
        refused = str(refusal)
    except DeadLetter.DoesNotExist:
        refused = "There is no such dead letter of this tenant."
    return {"letter": letter_id, "done": done, "refused": refused}
