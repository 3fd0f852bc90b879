"""Lists what failed for good, grouped by its error, with the context of the newest case."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from automation.core.states import Reason
from automation.engine.troubles import COUNTED, SHOWN, error_groups
from automation.management.arguments import add_rule, at_least
from automation.management.naming import rule_named
from automation.management.verbs import VerbCommand

ABOUT = __doc__
AGAIN = "a retry fails the same way: publish the mended rule, then automation_run replay RUN --live"


class Command(VerbCommand):
    """`manage.py automation_dead_letters --tenant acme --context`."""

    help = f"{ABOUT} {__doc__}"

    def add_own(self, parser: CommandParser) -> None:
        """Which of them, and whether with their context."""
        add_rule(parser, "only those of this rule")
        parser.add_argument("--code", default="", help="the reason code, such as exhausted")
        parser.add_argument(
            "--letters",
            type=at_least(1, most=COUNTED),
            metavar="N",
            help=f"name the newest N letters of each group (default {SHOWN}, with --json all that are looked at)",
        )
        parser.add_argument("--context", action="store_true", help="print the context of the newest case of each")

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the groups, the largest first."""
        rule_id = rule_named(options["rule"], deleted=True).pk if options["rule"] else None
        shown = options["letters"]
        if shown is None:
            shown = COUNTED if options["json"] else SHOWN
        groups = [asdict(group) for group in error_groups(rule_id=rule_id, reason=options["code"], shown=shown)]
        if not options["context"]:
            for group in groups:
                del group["snapshot"]
        return groups

    def say(self, answer: Any) -> Iterable[str]:
        """A line for each group, its letters and runs, and the context where it was asked for."""
        for group in answer:
            yield (
                f"{group['count']:>6} x {group['reason']} at {group['step'] or 'an event'} of {group['rule_name']!r}"
                f" (rule {group['rule_id']}), newest {group['newest_at']:%Y-%m-%d %H:%M:%S}: {group['example'][:200]}"
            )
            yield f"         letters {_numbers(group['letter_ids'], group['count'])}"
            if group["run_ids"]:
                yield f"         runs {_numbers(group['run_ids'], group['count'])}"
            yield f"         all of them: automation_retry --group {group['newest_id']}"
            if group["reason"] == Reason.TEMPLATE_ERROR:
                yield f"         {AGAIN}"
            if group.get("snapshot"):
                yield json.dumps(group["snapshot"], indent=2, ensure_ascii=False)
        if not answer:
            yield "No dead letter is open."
        if sum(group["count"] for group in answer) >= COUNTED:
            yield f"Only the newest {COUNTED} were looked at."


def _numbers(shown: list[int], count: int) -> str:
    """The numbers that are shown, and how many there are besides."""
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{' '.join(map(str, shown))}{more}"
