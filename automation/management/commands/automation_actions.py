"""Lists which action versions rules and runs need, and fails for those that would be missing."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.catalog import registry
from automation.engine import needed
from automation.management.arguments import add_json, add_tenant, misused, write_json, write_table
from automation.management.naming import tenant_named

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_actions` lists them; `--without page_on_call@1` says who would miss that version."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose, and what to leave out."""
        add_tenant(parser, required=False)
        parser.add_argument(
            "--without",
            metavar="ACTION@VERSION",
            action="append",
            default=[],
            help="as if the release didn't have it; may be given several times",
        )
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Exits with 1 when runs, open dead letters or rules that are on need what is, or would be, missing."""
        tenant_id = tenant_named(options["tenant"]).pk if options["tenant"] else None
        without = options["without"]
        unknown = [name for name in without if "@" not in name]
        if unknown:
            raise misused(f"{unknown[0]!r} names no version of an action, as page_on_call@1 does.")
        found = needed.needs(known=registry.actions if without else None, without=without, tenant_id=tenant_id)
        gone = [need for need in found if need.action not in registry.actions or need.action in without]
        if options["json"]:
            write_json(self.stdout, [self._line(need) | {"missing": need in gone} for need in found])
        else:
            head = ("action", "tenant", "rule", "published", "on", "runs", "dead letters", "versions", "")
            write_table(self.stdout, head, (self._row(need, missing=need in gone) for need in found))
            if not found and not without:
                self.stdout.write("No rule or run needs an action.")
        pressing = [need for need in gone if need.is_pressing]
        if pressing:
            names = ", ".join(sorted({need.action for need in pressing}))
            raise CommandError(f"Still needed: {names}. Runs and rules that are on would stand still without.")

    def _line(self, need: needed.Need) -> dict[str, Any]:
        return {**asdict(need), "pressing": need.is_pressing}

    def _row(self, need: needed.Need, *, missing: bool) -> list[Any]:
        return [
            need.action,
            need.tenant,
            f"{need.rule_id} {need.rule_name}",
            "yes" if need.live else "",
            "yes" if need.on else "",
            need.runs or "",
            need.dead_letters or "",
            ", ".join(map(str, need.versions)),
            "MISSING" if missing else "",
        ]
