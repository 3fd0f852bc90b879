"""Named places where a test stops, fails, delays or kills a process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from automation import failpoints
from automation.failpoints import FailpointError, arm, hit, parse

ROOT = Path(__file__).resolve().parent.parent.parent
PASS_TWICE = """
from automation.failpoints import hit
hit("effect.replied")
print("one", flush=True)
hit("effect.replied")
print("two")
"""


def start(code: str, **environment: str) -> "subprocess.Popen[str]":
    """Start Python on a piece of code."""
    everything = {**os.environ, "AUTOMATION_TESTS": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=everything,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_an_unset_failpoint_does_nothing_and_costs_nothing() -> None:
    started = time.perf_counter()
    for _ in range(100_000):
        hit("effect.replied")
    assert time.perf_counter() - started < 0.2


def test_kill_ends_the_process_at_the_point() -> None:
    process = start(PASS_TWICE, AUTOMATION_FAIL="effect.replied:kill")
    assert process.communicate(timeout=20)[0] == ""
    assert process.returncode == -signal.SIGKILL


def test_only_the_nth_pass_counts_where_one_is_named() -> None:
    process = start(PASS_TWICE, AUTOMATION_FAIL="settle.committed:raise, effect.replied:kill@2")
    assert process.communicate(timeout=20)[0] == "one\n"
    assert process.returncode == -signal.SIGKILL


def test_stop_freezes_the_process_until_it_is_continued() -> None:
    process = start(PASS_TWICE, AUTOMATION_FAIL="effect.replied:stop@2")
    _pid, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=20)[0] == "one\ntwo\n"


def test_raise_and_sleep_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMATION_TESTS", "1")
    with arm("match.before_commit:raise@2,match.claimed:sleep 30"):
        hit("match.before_commit")
        with pytest.raises(FailpointError, match=r"match\.before_commit"):
            hit("match.before_commit")
        hit("match.before_commit")
        started = time.monotonic()
        hit("match.claimed")
        assert time.monotonic() - started >= 0.03
    hit("match.before_commit")


@pytest.mark.parametrize(
    "setting",
    ["nowhere:kill", "effect.replied:explode", "effect.replied", "effect.replied:sleep", "effect.replied:kill@0", "x"],
)
def test_a_setting_without_meaning_is_refused(setting: str) -> None:
    with pytest.raises(FailpointError):
        parse(setting)


@pytest.mark.parametrize("variable", ["AUTOMATION_FAIL", "AUTOMATION_RACE"])
def test_failpoints_are_refused_at_start_unless_tests_are_on(variable: str) -> None:
    setting = {variable: "effect.replied:kill" if variable == "AUTOMATION_FAIL" else "effect.replied:/nowhere"}
    process = start("import automation.failpoints", **setting, AUTOMATION_TESTS="0")
    assert "tests only" in process.communicate(timeout=20)[1]
    assert process.returncode == 1


def test_arming_is_refused_unless_tests_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOMATION_TESTS", raising=False)
    with pytest.raises(FailpointError), arm("effect.replied:raise"):
        pass


def test_two_processes_meet_at_a_race_point_and_then_go_on_freely(tmp_path: Path) -> None:
    race = {"AUTOMATION_RACE": f"effect.replied:{tmp_path / 'race'}"}
    first = start(PASS_TWICE, **race)
    while not (tmp_path / "race" / "effect.replied.1").exists():
        assert first.poll() is None
    second = start(PASS_TWICE, **race)
    assert first.communicate(timeout=20)[0] == "one\ntwo\n"
    assert second.communicate(timeout=20)[0] == "one\ntwo\n"


def test_one_process_alone_does_not_wait_for_ever_at_a_race_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failpoints, "RACE_WAIT", 0.05)
    monkeypatch.setattr(failpoints, "_races", {"effect.replied": tmp_path})
    with pytest.raises(FailpointError, match="no second process"):
        hit("effect.replied")
    hit("effect.replied")
