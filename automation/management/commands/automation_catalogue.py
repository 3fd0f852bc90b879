"""Writes the pages on actions, triggers, records and settings from the code, or says which of them are stale."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation

from automation.catalog import registry
from automation.management import catalogue

ABOUT = __doc__

BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


class Command(BaseCommand):
    """`manage.py automation_catalogue docs` writes, with `--check` it only compares and fails where a page is stale."""

    help = f"{ABOUT} {__doc__}"
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """The folder of the pages."""
        parser.add_argument("folder", type=Path, help="that holds actions.md, triggers.md and operating.md")
        parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is stale")

    def handle(self, *args: Any, **options: Any) -> None:
        """Writes what differs, in English, whatever the language of the installation."""
        folder: Path = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"{folder} isn't a folder.")
        with translation.override("en"):
            pages = {
                folder / "actions.md": catalogue.actions_page(registry.actions.values()),
                folder / "triggers.md": catalogue.triggers_page(registry.triggers.values(), registry.models.values()),
                folder / "operating.md": with_settings(_read(folder / "operating.md")),
            }
        stale = [path for path, text in pages.items() if _read(path) != text]
        if options["check"] and stale:
            names = ", ".join(str(path) for path in stale)
            raise CommandError(f"Stale: {names}. Write them anew: manage.py automation_catalogue {folder}")
        for path in stale:
            path.write_text(pages[path], encoding="utf-8")
            self.stdout.write(str(path))


def with_settings(page: str) -> str:
    """A page with the present table of settings between its two marks; CommandError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise CommandError(f"The page on operating needs the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n{catalogue.settings_table()}\n{END}{after}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
