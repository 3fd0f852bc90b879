"""Lists where rules use a connection, group, member or field, or which rules have lost one, and switches those off."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from automation.engine.references import References, broken_rules, switch_off_broken
from automation.engine.usages import Gone, usages
from automation.management.arguments import add_json, add_tenant, write_json
from automation.management.naming import tenant_named
from automation.management.verbs import person
from tenants.context import acting_for
from tenants.models import Tenant

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_references --connection pager` lists who uses it; without a name, rules that are broken."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """What is to be deleted, or what to do with what is broken."""
        add_tenant(parser, required=False)
        for word, metavar, kind in (("connection", "NAME", str), ("group", "NAME", str), ("member", "ID", int)):
            parser.add_argument(f"--{word}", metavar=metavar, type=kind, action="append", default=[])
        parser.add_argument("--field", metavar="MODEL.PATH", action="append", default=[], help="as crm.lead.source")
        parser.add_argument("--switch-off", action="store_true", help="switch broken rules off and tell their people")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one line for each use, or for each broken rule, of one tenant or of all."""
        gone = Gone(options["connection"], options["member"], options["group"], options["field"])
        asked = any((gone.connections, gone.members, gone.groups, gone.fields))
        slug = options["tenant"]
        tenants = [tenant_named(slug)] if slug else list(Tenant.objects.filter(closed_at=None).order_by("pk"))
        lines: list[dict[str, Any]] = []
        for tenant in tenants:
            with acting_for(tenant.pk, person()):
                lines += _uses(tenant, gone) if asked else _broken(tenant, switch_off=options["switch_off"])
        if options["json"]:
            write_json(self.stdout, lines)
            return
        if not lines:
            self.stdout.write("No rule uses it." if asked else "No rule that is on has lost what it names.")
        for line in lines:
            self.stdout.write(f"{line['tenant']}: rule {line['rule']}: {line['sentence']}")


def _uses(tenant: Tenant, gone: Gone) -> list[dict[str, Any]]:
    return [
        {
            "tenant": tenant.slug,
            "rule": one.rule.pk,
            "name": one.rule.name,
            "use": one.what,
            "version": one.version,
            "steps": one.steps,
            "runs": one.runs,
            "sentence": one.sentence(),
        }
        for one in usages(gone)
    ]


def _broken(tenant: Tenant, *, switch_off: bool) -> list[dict[str, Any]]:
    found = broken_rules(References(tenant.pk))
    off = {rule.pk for rule in switch_off_broken()} if switch_off else set()
    return [
        {
            "tenant": tenant.slug,
            "rule": rule.pk,
            "name": rule.name,
            "problems": [str(problem) for problem in problems],
            "switched_off": rule.pk in off,
            "sentence": f"“{rule.name}” {'was switched off' if rule.pk in off else 'is broken'}: "
            + "; ".join(map(str, problems)),
        }
        for rule, problems in found
    ]
