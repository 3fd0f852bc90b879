"""The page on extending is true: its code passes the checks, is installed, and runs from a change to its effect."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from automation.catalog import registry
from automation.engine import ruleset
from automation.extend import post_event
from automation.outbound import forget_sessions
from tests.architecture.sources import ROOT
from tests.engine.world import leaf, make_world, step

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(r"^`((?:automation|tests)/[\w/]+\.py)`\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)
ACTION, TRIGGER = "automation/actions/tell_channel.py", "automation/triggers/promise_missed.py"
TEST = "tests/actions/test_tell_channel.py"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The page's files as modules of a package of their own; afterwards nobody knows them any more."""
    package = tmp_path / "shown_in_the_docs"
    package.mkdir()
    for name, text in FILES.items():
        (package / Path(name).name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(registry.actions), dict(registry.triggers)
    yield {name: importlib.import_module(f"shown_in_the_docs.{Path(name).stem}") for name in FILES}
    for registered, known in zip((registry.actions, registry.triggers), before, strict=True):
        for name in registered.keys() - known.keys():
            del registered[name]
    for name in [name for name in sys.modules if name.partition(".")[0] == "shown_in_the_docs"]:
        del sys.modules[name]
    ruleset.forget()
    forget_sessions()


def test_the_page_shows_an_action_with_its_test_and_a_trigger() -> None:
    assert set(FILES) == {ACTION, TEST, TRIGGER}


@pytest.mark.parametrize("name", FILES)
def test_its_code_passes_the_checks_of_the_product(name: str) -> None:
    for verb in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *verb, "--stdin-filename", name, "-"]
        done = subprocess.run(command, cwd=ROOT, input=FILES[name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [ACTION, TRIGGER])
def test_its_plug_ins_use_the_public_door_alone(name: str) -> None:
    modules = {node.module or "" for node in ast.walk(ast.parse(FILES[name])) if isinstance(node, ast.ImportFrom)}
    assert {module for module in modules if module.startswith("automation")} == {"automation.extend"}


@pytest.mark.django_db
def test_its_action_does_what_its_test_says(installed: dict[str, ModuleType], tmp_path: Path) -> None:
    assert "tell_channel@1" in registry.actions
    installed[TEST].test_a_channel_is_told_of_an_urgent_ticket(tmp_path)


@pytest.mark.django_db
def test_its_trigger_starts_a_rule_once_for_a_key(installed: dict[str, ModuleType]) -> None:
    world = make_world()
    trigger = {"kind": "promise_missed", "params": {}}
    late = leaf("event.minutes", "gte", 5)
    rule = world.rule("Late", step("t", "add_tags", tags=["late"]), trigger=trigger, condition=late)
    ticket = world.ticket()
    for _time in range(2):
        with world.acting():
            post_event(world.tenant, "promise.missed", record=ticket, data={"minutes": 5}, key=f"promise-{ticket.pk}")
    world.run()
    assert world.states(rule) == ["succeeded"]
    assert world.fresh(ticket).tags == ["late"]


def test_what_it_says_an_action_may_use_is_in_the_public_door() -> None:
    extend = importlib.import_module("automation.extend")
    named = {"Watched", "post_event", "importing", "by_api", "Template", "ConnectionRef", "FieldRef", "GroupRef"}
    assert all(f"`{name}" in PAGE or f"{name}(" in PAGE for name in named)
    assert named <= set(extend.__all__)
