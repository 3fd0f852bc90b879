"""Compares a rule's draft with its live version over stored events; it only judges."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.core.errors import DefinitionError
from automation.core.states import LIVE_BACKTEST
from automation.engine import backtest
from automation.engine.backtest_report import BacktestReport, report
from automation.engine.operate import Refused
from automation.management.arguments import add_json, add_tenant, at_least, misused, row, write_json
from automation.management.naming import readable_json, rule_named, tenant_named
from automation.models import Backtest
from tenants.context import acting_for

ABOUT = __doc__

SLICE = 0.5  # seconds of work between two lines of progress
WAIT = 0.2  # seconds, while a worker has it


class Command(BaseCommand):
    """`manage.py automation_backtest --tenant acme "Ask the warehouse" --days 7`."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule and how far back; or an earlier one, to look at or to stop."""
        parser.add_argument("rule", nargs="?", help="its number or name; its draft is compared with its live version")
        add_tenant(parser)
        parser.add_argument("--definition", metavar="FILE", help="compare this with the live version, not the draft")
        parser.add_argument(
            "--days", type=at_least(1), default=backtest.DAYS, help="how far back, in days (default %(default)s)"
        )
        parser.add_argument(
            "--events",
            type=at_least(1),
            default=backtest.EVENTS,
            help="the newest so many events (default %(default)s)",
        )
        parser.add_argument("--detach", action="store_true", help="leave it to the workers and print its number")
        parser.add_argument("--show", type=row, metavar="ID", help="an earlier one, as far as it is")
        parser.add_argument("--cancel", type=row, metavar="ID", help="stop an earlier one")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints what it found; exit code 1 where it can't be done, or failed."""
        with acting_for(tenant_named(options["tenant"]).pk):
            try:
                self._do(options)
            except DefinitionError as error:
                raise CommandError("\n".join(str(problem) for problem in error.problems)) from error
            except Refused as error:
                raise CommandError(str(error)) from error
            except Backtest.DoesNotExist as error:
                number = options["show"] if options["cancel"] is None else options["cancel"]
                raise CommandError(f"There is no backtest {number} of this tenant.") from error

    def _do(self, options: dict[str, Any]) -> None:
        wanted = options["show"] if options["cancel"] is None else options["cancel"]
        if wanted is not None:
            found = Backtest.objects.get(pk=wanted)
            if options["cancel"] is not None and not backtest.cancel(found.pk):
                raise CommandError(f"Backtest {found.pk} has ended, or is being stopped already.")
            self._print(found.pk, options)
            return
        if options["rule"] is None:
            raise misused("Name a rule, or an earlier backtest with --show or --cancel.")
        definition = readable_json(Path(options["definition"])) if options["definition"] else None
        made = backtest.start(
            rule_named(options["rule"]).pk, definition=definition, days=options["days"], most=options["events"]
        )
        if not options["detach"]:
            self._work(made.pk)
        self._print(made.pk, options)

    def _work(self, backtest_id: int) -> None:
        """Works on it here; where a worker has it at the moment, waits for its slice to end."""
        try:
            while True:
                if not backtest.work(SLICE, backtest_id=backtest_id):
                    time.sleep(WAIT)
                found = Backtest.objects.get(pk=backtest_id)
                if found.state not in LIVE_BACKTEST:
                    return
                self._tell(found)
        except KeyboardInterrupt:
            backtest.cancel(backtest_id)
            backtest.work(0, backtest_id=backtest_id)

    def _tell(self, found: Backtest) -> None:
        share = 100 * found.judged // max(found.total, 1)
        self.stderr.write(f"{share} %: {found.judged} of {found.total} events")
        self.stderr.flush()

    def _print(self, backtest_id: int, options: dict[str, Any]) -> None:
        found = report(Backtest.objects.select_related("rule", "against").get(pk=backtest_id))
        if options["json"]:
            write_json(self.stdout, found.to_json())
        else:
            self.stdout.write("\n".join(lines(found)))
        if found.state == "failed":
            raise CommandError(f"The backtest failed: {found.error}")


def lines(found: BacktestReport) -> Iterator[str]:
    """The report for people."""
    counts = found.counts
    live = f"live version {found.against}" if found.against is not None else "nothing live"
    yield f"Backtest {found.id} of “{found.rule}” against {live}: {found.state}, {found.judged} of {found.total} events"
    yield (
        f"live matched {counts['live']} · draft matches {counts['draft']} · +{counts['new']} new"
        f" · -{counts['lost']} no longer · {counts['both']} both · {counts['undecidable']} could not tell"
    )
    for kind, word in (("new", "new"), ("lost", "no longer"), ("undecidable", "could not tell")):
        for sample in found.samples[kind][:20]:
            about = f"  event {sample['event']}  {sample['record']}  {word}"
            yield about + (" (approximate)" if sample["approximate"] else "") + _why(sample["because"])
    for remark in found.remarks:
        yield f"! {remark}"
    yield f"Estimated for these events: {found.estimate}"


def _why(because: dict[str, Any] | None) -> str:
    if because is None:
        return ""
    if because["gate"] != "condition":
        return f"  because: {because['gate']}"
    return f"  because: {because['field']} {because['op']} {because['wanted']!r}, read {because['read']!r}"
