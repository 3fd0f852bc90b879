"""Lists what people should look at in a tenant's rules before it happens: loops, contradictions, what is gone."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.finding import Finding
from automation.engine.findings import findings, findings_of
from automation.models import Rule, RuleDraft
from tenants.context import acting_for
from tenants.models import Tenant

GRAVE = {"problem": 3, "warning": 2, "note": 1}


class Command(BaseCommand):
    """`automation_findings --tenant acme`, or `--rule 12 --draft` for a rule that is about to be published."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose rules, and whether one of them, as it is live or as it is drafted."""
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--rule", type=int, metavar="NUMBER", help="only what concerns this rule")
        parser.add_argument("--draft", action="store_true", help="with --rule: as if its draft were live")
        parser.add_argument(
            "--least", choices=list(GRAVE), default="note", help="leave out what is less grave (default %(default)s)"
        )
        parser.add_argument("--json", action="store_true", help="for programs: one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one finding a line with its places; a bad argument is said in one line."""
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        if options["draft"] and options["rule"] is None:
            raise CommandError("--draft goes with --rule.")
        with acting_for(tenant.pk):
            found = findings() if options["rule"] is None else _of_rule(options["rule"], draft=options["draft"])
        found = [one for one in found if GRAVE[one.severity] >= GRAVE[options["least"]]]
        if options["json"]:
            self.stdout.write(json.dumps({"findings": [one.to_json() for one in found]}, ensure_ascii=False))
            return
        for one in found:
            places = ", ".join(f"rule {place.rule_id} {place.node}".strip() for place in one.places)
            self.stdout.write(f"{one.severity} {one.kind}: {one.sentence} [{places}]")
        if not found:
            self.stdout.write("Nothing found.")


def _of_rule(rule_id: int, *, draft: bool) -> list[Finding]:
    try:
        definition = RuleDraft.objects.get(rule_id=rule_id, rule__deleted_at=None).definition if draft else None
        return findings_of(rule_id, definition)
    except (Rule.DoesNotExist, RuleDraft.DoesNotExist) as error:
        raise CommandError(f"There is no rule {rule_id} of this tenant.") from error
