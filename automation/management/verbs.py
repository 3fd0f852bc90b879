"""What the commands for operators share: whose tenant, who acts, and one line for whatever is refused."""

import getpass
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from automation.engine.operate import Refused
from automation.management.arguments import add_dry_run, add_json, add_tenant, object_in, write_json
from automation.management.naming import tenant_named
from tenants.context import Actor, acting_for

NOTHING_CHANGED = "Dry run: nothing was changed."


def person() -> Actor:
    """Who acts at the command line, as the audit shows it."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = "?"
    return Actor("system", None, f"{name} (command line)")


class VerbCommand(BaseCommand):
    """A verb for one tenant. A subclass writes `act`, which answers what `--json` prints and `say` turns into lines.

    `rehearsed` gives it `--dry-run`: the verb is done in a transaction that is rolled back. It is for verbs that touch
    little, since what they lock stays locked until then.
    """

    needs_tenant = True
    rehearsed = False

    def add_arguments(self, parser: CommandParser) -> None:
        """The tenant, the reason for the audit, and the form of the answer; then the verb's own."""
        self.add_own(parser)
        add_tenant(parser, required=self.needs_tenant)
        add_json(parser)
        if self.rehearsed:
            add_dry_run(parser)

    def add_own(self, parser: CommandParser) -> None:
        """The arguments of the verb."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Does the verb; what is refused, or isn't there, is said in one line, and the exit code is 1."""
        tenant = tenant_named(options["tenant"])
        with acting_for(tenant.pk, person()):
            try:
                answer = self.rehearse(options) if options.get("dry_run") else self.act(options)
            except ObjectDoesNotExist as error:
                raise CommandError(self.missing(options)) from error
            except (Refused, ValueError) as error:
                raise CommandError(str(error)) from error
        if options.get("dry_run"):
            self.stderr.write(NOTHING_CHANGED)
        self.tell(answer, options)

    def missing(self, options: dict[str, Any]) -> str:
        """What is said where the tenant has no such thing."""
        return "There is no such thing of this tenant."

    def rehearse(self, options: dict[str, Any]) -> Any:
        """The answer as it would be."""
        with transaction.atomic():
            answer = self.act(options)
            transaction.set_rollback(True)
        return answer

    def tell(self, answer: Any, options: dict[str, Any]) -> None:
        """Prints the answer."""
        if options["json"]:
            write_json(self.stdout, answer)
        else:
            for line in self.say(answer):
                self.stdout.write(line)

    def act(self, options: dict[str, Any]) -> Any:
        """Does it, acting in the tenant; answers a JSON value."""
        raise NotImplementedError

    def say(self, answer: Any) -> Iterable[str]:
        """The answer in lines for people."""
        yield str(answer)


def object_of(text: str | None, name: str) -> dict[str, Any] | None:
    """A JSON object from the command line; None where none was given."""
    return None if text is None else object_in(text, name, example='{"status": 200}')
