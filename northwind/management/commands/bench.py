"""Measures the engine on a scratch database with real workers, against the floor of the same run."""

import importlib
import json
import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from northwind.bench.floor import SECONDS, measure_floor
from northwind.bench.place import place
from northwind.bench.result import Report
from northwind.process_tree import PartDiedError

ABOUT = __doc__

NAMES = ("outside", "local", "latency", "capture", "match", "fair", "backtest")


class Command(BaseCommand):
    """One module of `northwind.bench` by its name; the floor is measured before and after it."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which one, and its size."""
        parser.add_argument("name", choices=NAMES)
        parser.add_argument("--json", action="store_true", help="print the figures as JSON")
        parser.add_argument("--scale", type=float, default=1.0, help="a part of the full size, for a quick look")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the report; exit code 0 when it was measured, whatever it says."""
        logging.getLogger("django-q").setLevel(logging.WARNING)
        try:
            report = self._report(options["name"], options["scale"])
        except PartDiedError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(report.to_json()) if options["json"] else "\n".join(report.lines()))

    def _report(self, name: str, scale: float) -> Report:
        bench = importlib.import_module(f"northwind.bench.{name}")
        with place(self._tell, scale) as here:
            seconds = SECONDS * min(max(scale, 0.1), 1.0)
            before = measure_floor(here.url, seconds)
            measured = bench.measure(here)
            here.stop_workers()
            report = Report(name, (before + measure_floor(here.url, seconds)) / 2, measured)
        if report.ratio is not None:
            measured.bars += bench.bars(report.ratio)
        return report

    def _tell(self, text: str) -> None:
        self.stderr.write(text)
        self.stderr.flush()
