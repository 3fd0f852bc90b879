"""Plans recorded runs again with this release and names every decision that would be another one; it never acts."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.engine.histories import history_of_run
from automation.engine.replaying import Moved, NoHistory, NotKept, replay_history, replay_run, runs_lately
from automation.management.arguments import add_json, add_tenant, at_least, misused, row, write_json
from automation.management.naming import readable_json, tenant_named
from automation.models import Run
from tenants.context import acting_for

ABOUT = __doc__

PROGRESS = 500
LAST = 1000
Planned = Callable[[], list[Moved]]


class Command(BaseCommand):
    """`manage.py automation_replay tests/replay`, or `--tenant acme --last 1000` before a release goes live."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Recorded runs in files, or stored ones of a tenant."""
        parser.add_argument("paths", nargs="*", type=Path, help="files of recorded runs, or folders of them")
        add_tenant(parser, required=False)
        parser.add_argument("--run", type=row, action="append", default=[], metavar="ID", help="a stored run")
        parser.add_argument(
            "--last", type=at_least(1), metavar="N", help=f"the newest N stored runs ({LAST} without --run)"
        )
        parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the stored runs as files instead")
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints what moved; exit code 1 when anything did."""
        if bool(options["paths"]) == bool(options["tenant"]):
            raise misused("Name files, or the --tenant whose runs are meant.")
        if options["tenant"]:
            with acting_for(tenant_named(options["tenant"]).pk):
                self._stored(options)
        else:
            self._planned(dict(_of_files(options["paths"])), options)

    def _stored(self, options: dict[str, Any]) -> None:
        ids = options["run"] or runs_lately(options["last"] or LAST)
        if options["write"] is not None:
            self._write(ids, options["write"])
            return
        self._planned({f"run {one}": partial(_of_run, one) for one in ids}, options)

    def _write(self, ids: list[int], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for one in ids:
            with (folder / f"run-{one}.json").open("w", encoding="utf-8") as file:
                json.dump(_found(history_of_run, one), file, indent=1, ensure_ascii=False)
        self.stdout.write(f"{len(ids)} runs written to {folder}. They hold what the records said.")

    def _moved(self, runs: dict[str, Planned]) -> tuple[dict[str, list[Moved]], list[str]]:
        """What moved, by run, and the runs that can't be planned any more."""
        moved, gone = dict[str, list[Moved]](), list[str]()
        for number, (name, plan) in enumerate(runs.items(), start=1):
            try:
                if found := plan():
                    moved[name] = found
            except NotKept:
                gone.append(name)
            if number % PROGRESS == 0:
                self.stderr.write(f"{number} of {len(runs)} runs")
        return moved, gone

    def _planned(self, runs: dict[str, Planned], options: dict[str, Any]) -> None:
        moved, gone = self._moved(runs)
        every = [(name, one) for name, many in moved.items() for one in many]
        if options["json"]:
            told = [{"run": name, **asdict(one)} for name, one in every]
            write_json(self.stdout, {"runs": len(runs), "moved": told, "not_kept": gone})
        else:
            for name in gone:
                self.stdout.write(f"{name}: not kept: its values were removed, so it can't be planned again.")
            for name, one in every:
                self.stdout.write(f"{name}: {one.where}: was {one.recorded}, is now {one.planned}")
        if moved:
            raise CommandError(f"{len(moved)} of {len(runs)} runs would go another way.")
        if not options["json"]:
            self.stdout.write(f"{len(runs) - len(gone)} runs planned again: nothing has moved.")


def _of_files(paths: list[Path]) -> Iterator[tuple[str, Planned]]:
    for path in paths:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not files:
            raise CommandError(f"There is no recorded run in {path}.")
        for file in files:
            yield str(file), partial(_of_file, file)


def _of_file(file: Path) -> list[Moved]:
    try:
        return replay_history(readable_json(file))
    except NoHistory as error:
        raise CommandError(f"{file}: {error}") from error


def _of_run(run_id: int) -> list[Moved]:
    found: list[Moved] = _found(replay_run, run_id)
    return found


def _found(read: Callable[[int], Any], run_id: int) -> Any:
    try:
        return read(run_id)
    except Run.DoesNotExist as error:
        raise CommandError(f"There is no run {run_id} of this tenant.") from error
