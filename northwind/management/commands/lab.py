"""Shows what one tenant's load and loops do to the others: fifty tenants on real workers, measured from outside."""

import argparse
import json
import logging
import sys
from collections import deque
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from northwind.lab.driver import drive
from northwind.lab.experiment import SWITCHES, Lab, Setup
from northwind.lab.figures import MOST_IMPORT, MOST_RUNS, MOST_WAIT, Figures
from northwind.process_tree import PartDiedError

ABOUT = __doc__

LOG_LINES = 60


class Command(BaseCommand):
    """Exit code 0 when the product has kept its promises, else 1."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """The switches, and the sizes for a quick look."""
        parser.add_argument("--without", choices=list(SWITCHES), default="", help="switch this protection off")
        parser.add_argument("--own-pool", choices=["contoso"], help="give this tenant workers of its own")
        parser.add_argument("--json", action="store_true", help="print the figures as JSON")
        parser.add_argument("--tenants", type=int, default=50)
        parser.add_argument("--tickets", type=int, default=2000, help="that Contoso imports")
        parser.add_argument("--every", type=float, default=3.0, help="seconds between two changes of a small tenant")
        parser.add_argument("--seed", type=int, default=1, help="draws which pages get no answer")
        parser.add_argument("--log", type=argparse.FileType("w"), help="a file for what the processes say")
        parser.add_argument("--drive", type=float, help=argparse.SUPPRESS)
        parser.add_argument("--of", default="", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs the experiment, or, as its child, the people of the small tenants."""
        if options["drive"]:
            drive([int(one) for one in options["of"].split(",")], options["drive"])
            return
        if options["tenants"] < 3 or options["tickets"] < 1:
            raise CommandError("The experiment needs three tenants and one ticket at least.")
        logging.getLogger("django-q").setLevel(logging.WARNING)
        found = self._run(options)
        if options["json"]:
            self.stdout.write(json.dumps(found.to_json()))
        else:
            self.stdout.write("\n".join(table(found)))
        if not found.passed:
            sys.exit(1)

    def _run(self, options: dict[str, Any]) -> Figures:
        names = ("tenants", "tickets", "every", "without", "seed")
        setup = Setup(**{name: options[name] for name in names}, own_pool=bool(options["own_pool"]))
        last: deque[str] = deque(maxlen=LOG_LINES)

        def log(name: str, line: str) -> None:
            last.append(f"{name} | {line}")
            if options["log"]:
                options["log"].write(f"{name} | {line}\n")

        lab = Lab(setup, tell=self._tell, log=log)
        try:
            return lab.run()
        except PartDiedError as error:
            self._tell("\n".join(last))
            raise CommandError(str(error)) from error

    def _tell(self, text: str) -> None:
        self.stderr.write(text)
        self.stderr.flush()


def table(found: Figures) -> list[str]:
    """The figures for people, each beside what was promised."""
    values = found.to_json()
    pages, waits = values["pages"], values["others_wait_s"]
    rows = [
        ("runs for one change", f"{found.runs_for_one_change} ({found.suppressed} suppressed)", f"at most {MOST_RUNS}"),
        ("pages shown", f"{pages['shown']} of {pages['expected']}", "all"),
        ("shown more than once", f"{pages['shown_twice']}", "none"),
        ("others' changes", f"{len(found.waits)}", ""),
        ("others wait, p50", f"{waits['p50']:.3f} s", ""),
        ("others wait, p95", f"{waits['p95']:.3f} s", ""),
        ("others wait, longest", f"{waits['max']:.3f} s", f"at most {MOST_WAIT:.0f} s"),
        (f"import of {found.tickets}", f"{found.import_seconds:.1f} s", f"at most {MOST_IMPORT:.0f} s"),
    ]
    if found.on_shared is not None:
        rows.append(("its steps on shared workers", f"{found.on_shared} of {found.own_steps}", "none"))
    lines = [f"{'':<30}{'seen':<24}promised"]
    lines += [f"{name:<30}{seen:<24}{promised}".rstrip() for name, seen, promised in rows]
    return [*lines, "", "PASSED" if found.passed else "FAILED"]
