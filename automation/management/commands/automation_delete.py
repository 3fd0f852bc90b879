"""Deletes a rule, which can be brought back for 30 days."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from automation.engine import rules
from automation.management.arguments import add_reason
from automation.management.naming import rule_named
from automation.management.verbs import VerbCommand

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_delete RULE --tenant acme --reason "not used"`; `--dry-run` says what would end."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """Which rule, and why."""
        parser.add_argument("rule", help="its number or name")
        add_reason(parser)

    def rehearse(self, options: dict[str, Any]) -> Any:
        """Answers what would end with the rule."""
        goes = rules.what_goes(rule_named(options["rule"]).pk)
        named = {"rule": goes.rule.pk, "name": goes.rule.name, "tenant": options["tenant"]}
        return {**named, "runs": goes.runs, "dead_letters": goes.dead_letters}

    def act(self, options: dict[str, Any]) -> Any:
        """Answers what ends with the rule, and what became of its runs."""
        goes = self.rehearse(options)
        return {**goes, "cancelled": asdict(rules.delete(goes["rule"], reason=options["reason"]))}

    def say(self, answer: Any) -> Iterable[str]:
        """What ends; then that it has, and how to bring the rule back."""
        yield (
            f"Rule {answer['rule']} “{answer['name']}”: runs under way {answer['runs']},"
            f" open dead letters {answer['dead_letters']}."
        )
        if "cancelled" in answer:
            done = answer["cancelled"]
            yield f"Deleted. Runs cancelled: {done['ended']}; asked their workers to end: {done['asked']}."
            yield f"To bring it back: manage.py automation_undelete {answer['rule']} --tenant {answer['tenant']}"
