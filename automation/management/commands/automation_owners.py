"""Lists rules that nobody looks after, since their owner has left, and gives rules to somebody else."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from automation.engine import rules
from automation.engine.operate import Refused
from automation.engine.references import people
from automation.management.arguments import (
    add_dry_run,
    add_json,
    add_reason,
    add_tenant,
    misused,
    write_json,
    write_table,
)
from automation.management.naming import rule_named, tenant_named
from automation.management.near import unknown
from automation.management.verbs import NOTHING_CHANGED, person
from automation.models import Rule
from tenants.context import acting_for

ABOUT = __doc__


class Command(BaseCommand):
    """`manage.py automation_owners --tenant acme` lists; `--from bo --to ana` or `--rule 12 --to ana` hands over."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose rules, from whom and to whom."""
        add_tenant(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--rule", metavar="RULE", help="this rule, by its number or name")
        which.add_argument("--from", dest="owner", metavar="LOGIN", help="all rules of this user")
        which.add_argument("--gone", action="store_true", help="all rules that are on and have no owner any more")
        parser.add_argument("--to", metavar="LOGIN", help="who gets them")
        add_reason(parser)
        add_json(parser)
        add_dry_run(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Hands over where it is told to whom, and lists what is left without an owner."""
        chosen = options["rule"] or options["owner"] or options["gone"]
        if bool(chosen) != bool(options["to"]):
            raise misused("--to goes with one of --rule, --from and --gone.")
        with acting_for(tenant_named(options["tenant"]).pk, person()), transaction.atomic():
            if options["to"]:
                self._hand_over(options)
            left = list(rules.owner_gone())
            if options["dry_run"]:
                transaction.set_rollback(True)
                self.stderr.write(NOTHING_CHANGED)
        if options["json"]:
            write_json(self.stdout, [{"rule": rule.pk, "name": rule.name, "owner": _login(rule)} for rule in left])
        elif not left:
            self.stdout.write("No rule that is on has lost its owner.")
        else:
            write_table(
                self.stdout, ("rule", "name", "owner who left"), ((r.pk, r.name, _login(r) or "(nobody)") for r in left)
            )

    def _hand_over(self, options: dict[str, Any]) -> None:
        heir = _user(options["to"])
        for rule in _chosen(options):
            try:
                rules.give(rule.pk, owner_id=heir.pk, reason=options["reason"])
            except Refused as refusal:
                raise CommandError(str(refusal)) from refusal
            self.stderr.write(f"Rule {rule.pk} “{rule.name}” belongs to {heir.username} now.")


def _chosen(options: dict[str, Any]) -> list[Rule]:
    if options["rule"]:
        return [rule_named(options["rule"])]
    return rules.owned_by(_user(options["owner"]).pk) if options["owner"] else rules.owner_gone()


def _user(login: str) -> User:
    user = User.objects.filter(username=login).first()
    if user is None:
        raise unknown("user", login, people().values_list("user__username", flat=True))
    return user


def _login(rule: Rule) -> str:
    return rule.owner.get_username() if rule.owner else ""
