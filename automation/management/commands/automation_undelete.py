"""Brings a deleted rule back, switched off; without one it lists those that can be brought back."""

from typing import Any

from django.core.management.base import CommandParser

from automation.engine import rules
from automation.management.arguments import add_reason, row, write_table
from automation.management.verbs import VerbCommand

ABOUT = __doc__


class Command(VerbCommand):
    """`manage.py automation_undelete --tenant acme` lists, with the number of a rule it restores."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """Which rule."""
        parser.add_argument("rule", nargs="?", type=row, help="its number, as the list has it")
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Restores, or answers what can be restored."""
        if options["rule"] is not None:
            rules.undelete(options["rule"], reason=options["reason"])
            return {"rule": options["rule"], "restored": True}
        return [
            {
                "rule": rule.pk,
                "name": rule.name,
                "deleted_at": rule.deleted_at,
                "restorable_until": rules.restorable_until(rule),
            }
            for rule in rules.deleted()
        ]

    def missing(self, options: dict[str, Any]) -> str:
        """Only a rule is named."""
        return f"There is no rule {options['rule']} of this tenant."

    def tell(self, answer: Any, options: dict[str, Any]) -> None:
        """The list as a table."""
        if options["json"]:
            super().tell(answer, options)
        elif isinstance(answer, dict):
            self.stdout.write("It is back, switched off; its runs stay cancelled.")
        elif not answer:
            self.stdout.write("No deleted rule can be brought back.")
        else:
            rows = (
                (
                    one["rule"],
                    one["name"],
                    f"{one['deleted_at']:%Y-%m-%d %H:%M}",
                    f"{one['restorable_until']:%Y-%m-%d %H:%M}",
                )
                for one in answer
            )
            write_table(self.stdout, ("rule", "name", "deleted", "restorable until"), rows)
