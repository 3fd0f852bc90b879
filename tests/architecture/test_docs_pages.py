"""The pages are short, found from the README, name what exists, and those that are generated are fresh."""

import re
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.utils import translation

from automation.catalog import registry
from automation.conf import Conf
from automation.management import catalogue
from automation.management.commands.automation_catalogue import with_settings
from tests.architecture.sources import PACKAGES, ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LONGEST = 250
LISTS = {"cases.md"}  # as long as what they list
# The page on extending shows files that it makes up; its own test writes and runs them.
MADE_UP = {
    "automation/actions/tell_channel.py",
    "automation/triggers/promise_missed.py",
    "tests/actions/test_tell_channel.py",
}
FILE = re.compile(r"`((?:automation|northwind|tenants|tests|templates|docs)/[\w/.]+\.\w+)`")
COMMAND = re.compile(r"(?:`|manage\.py )((?:automation|import)_[a-z_]+)((?: [^`\n]*)?)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")

each = pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_short_and_found_from_the_readme(page: Path) -> None:
    assert len(text_of(page).splitlines()) <= LONGEST or page.name in LISTS
    assert f"docs/{page.name}" in text_of(ROOT / "README.md")


@each
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert not [target for target in LINK.findall(text_of(page)) if not (page.parent / target).exists()]


@each
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    assert not [name for name in set(FILE.findall(text_of(page))) - MADE_UP if not (ROOT / name).exists()]


@each
def test_the_commands_that_a_page_names_exist(page: Path) -> None:
    own = {path.stem for package in PACKAGES for path in (ROOT / package).glob("management/commands/*.py")}
    named = set(re.findall(r"manage\.py (\w+)", text_of(page)))
    assert named <= own | {"check", "collectstatic", "createsuperuser", "migrate", "makemigrations"}


def test_the_readme_names_every_command() -> None:
    own = {path.stem for package in PACKAGES for path in (ROOT / package).glob("management/commands/[a-z]*.py")}
    assert not [name for name in sorted(own) if f"`{name}`" not in text_of(ROOT / "README.md")]


def test_the_help_of_a_command_begins_with_what_it_does() -> None:
    own = {name: app for name, app in get_commands().items() if app in PACKAGES}
    assert len(own) > 30
    for name, app in own.items():
        command = load_command_class(app, name)
        assert command.help.startswith(f"{sys.modules[type(command).__module__].__doc__} "), name


@each
def test_the_options_that_a_page_gives_a_command_exist(page: Path) -> None:
    missing, own = [], get_commands()
    for name, words in COMMAND.findall(text_of(page)):
        if name not in own:  # a table, or a reason
            continue
        command = load_command_class(own[name], name)
        known = command.create_parser("manage.py", name)._option_string_actions
        missing += [f"{name} {option}" for option in OPTION.findall(words) if option not in known]
    assert not missing


@each
def test_the_settings_of_the_engine_that_a_page_names_exist(page: Path) -> None:
    known = {f"AUTOMATION_{one.name.upper()}" for one in fields(Conf)}
    known |= {"AUTOMATION_LAB", "AUTOMATION_TESTS", "AUTOMATION_FAIL", "AUTOMATION_RACE"}
    assert set(re.findall(r"AUTOMATION_[A-Z_]*[A-Z]", text_of(page))) <= known


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    contracts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (checked,) = [one["layers"] for one in contracts if one.get("containers") == ["automation"]]
    # In brackets: layers that may be missing, and are not described before they are there.
    wanted = [[name for name in layer.split(" | ") if not name.startswith("(")] for layer in checked]
    block = text_of(DOCS / "architecture.md").partition("northwind → automation → tenants\n\n")[2].partition("```")[0]
    shown = [line.partition("  ")[0].split(" | ") for line in block.splitlines()]
    assert shown == wanted


@pytest.mark.parametrize("page", ["architecture.md", "engine.md", "decisions.md"])
def test_a_module_that_is_named_without_its_folder_exists(page: str) -> None:
    known = {path.name for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    known |= {f"{path.parent.name}/{path.name}" for path in (ROOT / "automation" / "engine").rglob("*.py")}
    assert set(re.findall(r"`((?:operate/)?\w+\.py)`", text_of(DOCS / page))) <= known


def test_the_folders_of_the_product_are_described() -> None:
    text = text_of(DOCS / "architecture.md")
    folders = [path.parent for package in PACKAGES for path in (ROOT / package).glob("*/__init__.py")]
    names = {f"{folder.parent.name}/{folder.name}/" for folder in folders}
    assert not {name for name in names if f"`{name}" not in text} - {
        "automation/migrations/",
        "tenants/migrations/",
        "northwind/management/",
    }


def test_the_catalogue_is_as_the_code_is() -> None:
    def ours(entry: object) -> bool:
        return entry.__module__.partition(".")[0] in PACKAGES

    models = [
        entry for entry in registry.models.values() if ours(entry.model) and "tests" not in entry.model.__module__
    ]
    with translation.override("en"):
        actions = catalogue.actions_page(filter(ours, registry.actions.values()))
        triggers = catalogue.triggers_page(filter(ours, registry.triggers.values()), models)
    assert text_of(DOCS / "actions.md") == actions, "write it anew: manage.py automation_catalogue docs"
    assert text_of(DOCS / "triggers.md") == triggers, "write it anew: manage.py automation_catalogue docs"


def test_the_table_of_settings_is_as_the_code_is() -> None:
    page = text_of(DOCS / "operating.md")
    assert page == with_settings(page), "write it anew: manage.py automation_catalogue docs"


def test_every_setting_is_explained() -> None:
    assert {one.name for one in fields(Conf)} == set(catalogue.SETTINGS)
    assert all(catalogue.SETTINGS.values())


def test_the_command_writes_the_pages_and_says_which_are_stale(tmp_path: Path) -> None:
    (tmp_path / "operating.md").write_text("Before\n<!-- settings: begin -->\n<!-- settings: end -->\nAfter\n")
    with pytest.raises(CommandError, match=r"actions\.md"):
        call_command("automation_catalogue", str(tmp_path), "--check")
    assert not (tmp_path / "actions.md").exists()
    call_command("automation_catalogue", str(tmp_path))
    call_command("automation_catalogue", str(tmp_path), "--check")
    written = (tmp_path / "operating.md").read_text(encoding="utf-8")
    assert written.startswith("Before\n<!-- settings: begin -->\n| setting")
