"""The runbook has a row for whatever can ask for somebody, and each command line in the documents can be given."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from automation.core.states import Reason
from automation.engine import notices
from tests.architecture.sources import ROOT, Module, called, modules

RUNBOOK = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
# An alarm whose name comes from the caller: the module, and the function whose first argument it is.
HANDED_OVER = {"automation/engine/by_itself.py": "by_itself", "automation/management/commands/run_workers.py": "_leave"}
COMMAND = re.compile(r"(?:`|manage\.py )((?:automation|import)_[a-z_]+) ([^`\n]+)")
PLACEHOLDER = re.compile(r"[A-Z]+")


def rows(title: str) -> set[str]:
    """What the first cells of the table below a title name, but for what they have in brackets."""
    part = RUNBOOK.partition(f"### {title}\n")[2].partition("\n##")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", re.sub(r"\(.*?\)", "", cell))}


def lines() -> Iterator[tuple[Module, ast.Call]]:
    """Each call that writes a line of the log, by whatever part of the engine."""
    for module in modules():
        if module.name.startswith("automation/"):
            for call in module.calls(*LEVELS):
                if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "log":
                    yield module, call


def text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def alarms() -> Iterator[str]:
    for module, call in lines():
        if text(call.args[0]) != "alarm":
            continue
        [what] = [word.value for word in call.keywords if word.arg == "what"]
        name = text(what)
        if name is not None:
            yield name
            continue
        handing = HANDED_OVER[module.name]
        places = [module] if handing.startswith("_") else modules()
        callers = (one for place in places for one in place.calls(handing))
        yield from (text(one.args[0]) or f"a name that isn't written out, in {called(one)}" for one in callers)


def test_each_alarm_has_a_row_that_says_what_it_means_and_what_helps() -> None:
    assert rows("Alarms") == set(alarms())


def test_each_other_line_of_the_log_has_a_row() -> None:
    named = {text(call.args[0]) or f"a name that isn't written out, in {module.name}" for module, call in lines()}
    assert rows("Other lines") == named - {"alarm"}


def test_each_kind_of_notice_has_a_row() -> None:
    source = Module(Path(notices.__file__))
    kinds = {
        getattr(notices, call.args[0].id) for call in source.calls("_notice") if isinstance(call.args[0], ast.Name)
    }
    assert len(kinds) > 5
    assert rows("Notices") == kinds


def test_each_reason_has_a_row() -> None:
    assert rows("Reasons") == {str(reason) for reason in Reason}


def test_each_command_has_a_row_that_says_whether_it_can_be_rehearsed_and_read_by_programs() -> None:
    told = {
        cells[1].strip("` "): (cells[3] == "yes", cells[4] == "yes")
        for line in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `automation_") and len(cells := [cell.strip() for cell in line.split("|")]) == 6
    }
    real = {}
    for name, app in get_commands().items():
        if name.startswith("automation_"):
            options = load_command_class(app, name).create_parser("manage.py", name)._option_string_actions
            real[name] = ("--dry-run" in options, "--json" in options)
    assert told == real


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_line_of_a_page_can_be_given(page: Path) -> None:
    refused, own = [], get_commands()
    for name, words in COMMAND.findall(page.read_text(encoding="utf-8")):
        if name not in own or "…" in words:
            continue
        command = load_command_class(own[name], name)
        parser = command.create_parser("manage.py", name)
        given = [PLACEHOLDER.sub("1", word) if PLACEHOLDER.fullmatch(word) else word for word in shlex.split(words)]
        if "--tenant" in parser._option_string_actions and not {"--tenant", "--installation"} & set(given):
            given += ["--tenant", "acme"]
        try:
            parser.parse_args(given)
        except CommandError as error:
            refused.append(f"{name} {words}: {error}")
    assert not refused
