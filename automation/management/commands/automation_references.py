"""Lists where rules use a connection, group, member or field, or which rules have lost one, and switches those off."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from automation.catalog import registry
from automation.engine.references import References, broken_rules, people, switch_off_broken
from automation.engine.usages import Gone, usages
from automation.management.arguments import add_dry_run, add_json, add_tenant, misused, row, write_json
from automation.management.naming import tenant_named
from automation.management.near import unknown
from automation.management.verbs import NOTHING_CHANGED, person
from automation.models import Connection
from tenants.context import acting_for
from tenants.models import Group, Tenant

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_references --connection pager` lists who uses it; without a name, rules that are broken."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """What is to be deleted, or what to do with what is broken."""
        add_tenant(parser, required=False)
        for word, metavar, kind in (("connection", "NAME", str), ("group", "NAME", str), ("member", "ID", row)):
            parser.add_argument(f"--{word}", metavar=metavar, type=kind, action="append", default=[])
        parser.add_argument("--field", metavar="MODEL.PATH", action="append", default=[], help="as crm.lead.source")
        parser.add_argument("--switch-off", action="store_true", help="switch broken rules off and tell their people")
        add_dry_run(parser)
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one line for each use, or for each broken rule, of one tenant or of all."""
        gone = Gone(options["connection"], options["member"], options["group"], options["field"])
        asked = any((gone.connections, gone.members, gone.groups, gone.fields))
        slug, off = options["tenant"], options["switch_off"] and not options["dry_run"]
        if asked and options["switch_off"]:
            raise misused("--switch-off is for rules that are broken now: name nothing with it.")
        tenants = [tenant_named(slug)] if slug else list(Tenant.objects.filter(closed_at=None).order_by("pk"))
        lines: list[dict[str, Any]] = []
        for tenant in tenants:
            with acting_for(tenant.pk, person()):
                lines += _uses(tenant, gone) if asked else _broken(tenant, switch_off=off)
        if not lines:
            _refuse_unknown(gone, tenants)
        if options["dry_run"]:
            self.stderr.write(NOTHING_CHANGED)
        if options["json"]:
            write_json(self.stdout, lines)
            return
        if not lines:
            self.stdout.write("No rule uses it." if asked else "No rule that is on has lost what it names.")
        for line in lines:
            self.stdout.write(f"{line['tenant']}: rule {line['rule']}: {line['sentence']}")


def _refuse_unknown(gone: Gone, tenants: list[Tenant]) -> None:
    """CommandError for the first name that no tenant has; what rules still name though it is gone was listed before."""
    known: dict[str, set[str]] = {"connection": set(), "group": set(), "member": set()}
    for tenant in tenants:
        with acting_for(tenant.pk):
            known["connection"] |= set(Connection.objects.values_list("name", flat=True))
            known["group"] |= set(Group.objects.values_list("name", flat=True))
            known["member"] |= {str(pk) for pk in people().values_list("pk", flat=True)}
    known["field"] = {f"{name}.{path}" for name, entry in registry.models.items() for path in entry.fields}
    asked = {"connection": gone.connections, "group": gone.groups, "member": gone.members, "field": gone.fields}
    for what, names in asked.items():
        for name in map(str, names):
            if name not in known[what]:
                raise unknown(what, name, known[what])


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
