"""Lists what people should look at in a tenant's rules before it happens: loops, contradictions, what is gone."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.finding import Finding
from automation.engine.findings import findings, findings_of
from automation.management.arguments import add_json, add_rule, add_tenant, misused, write_json
from automation.management.naming import rule_named, tenant_named
from automation.models import RuleDraft
from tenants.context import acting_for

ABOUT = __doc__

GRAVE = {"problem": 3, "warning": 2, "note": 1}


class Command(BaseCommand):
    """`automation_findings --tenant acme`, or `--rule 12 --draft` for a rule that is about to be published."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose rules, and whether one of them, as it is live or as it is drafted."""
        add_tenant(parser)
        add_rule(parser, "only what concerns this rule")
        parser.add_argument("--draft", action="store_true", help="with --rule: as if its draft were live")
        parser.add_argument(
            "--least", choices=list(GRAVE), default="note", help="leave out what is less grave (default %(default)s)"
        )
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one finding a line with its places; a bad argument is said in one line."""
        tenant = tenant_named(options["tenant"])
        if options["draft"] and options["rule"] is None:
            raise misused("--draft goes with --rule.")
        with acting_for(tenant.pk):
            found = findings() if options["rule"] is None else _of_rule(options["rule"], draft=options["draft"])
        found = [one for one in found if GRAVE[one.severity] >= GRAVE[options["least"]]]
        if options["json"]:
            write_json(self.stdout, {"findings": [one.to_json() for one in found]})
            return
        for one in found:
            places = ", ".join(f"rule {place.rule_id} {place.node}".strip() for place in one.places)
            self.stdout.write(f"{one.severity} {one.kind}: {one.sentence} [{places}]")
        if not found:
            self.stdout.write("Nothing found.")


def _of_rule(text: str, *, draft: bool) -> list[Finding]:
    rule = rule_named(text)
    try:
        return findings_of(rule.pk, RuleDraft.objects.get(rule=rule).definition if draft else None)
    except RuleDraft.DoesNotExist as error:
        raise CommandError(f"Rule {rule.pk} has no draft.") from error
