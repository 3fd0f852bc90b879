"""Several processes as one: they start, say things, and end together, whatever ends the one that supervises them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from northwind.guardian import is_there
from northwind.process_tree import ROOT, PartDiedError, ProcessTree

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("database_url")]

PATIENT = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); time.sleep(600)",
]
BRIEF = [sys.executable, "-c", "import sys; print('bye', flush=True); sys.exit(3)"]
# Its child stays in the group when the leader is gone.
WITH_CHILD = [
    sys.executable,
    "-c",
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    " print('here', flush=True); time.sleep(600)",
]


def gone(group: int) -> bool:
    """Whether nobody of a process group is left, within some seconds."""
    ends_at = time.monotonic() + 20
    while is_there(group):
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.02)
    return True


def test_every_line_is_said_with_the_name_of_its_part_and_nothing_is_left():
    said: list[tuple[str, str]] = []
    with ProcessTree(lambda name, line: said.append((name, line))) as tree:
        parts = [tree.start(name, command) for name, command in (("a", PATIENT), ("b", WITH_CHILD))]
        for part in parts:
            assert tree.wait_for(part, lambda line: line == "here") == "here"
        assert tree.turn()
    assert said == [("a", "here"), ("b", "here")]
    assert all(gone(part.pid) for part in parts)


def test_a_part_that_ends_by_itself_ends_the_others():
    with ProcessTree(lambda name, line: None) as tree:
        patient = tree.start("patient", PATIENT)
        brief = tree.start("brief", BRIEF)
        with pytest.raises(PartDiedError, match="brief ended with 3"):
            tree.wait_for(brief, lambda line: line == "never")
    assert gone(patient.pid)


def test_a_part_that_does_not_listen_is_killed_after_its_grace():
    with ProcessTree(lambda name, line: None) as tree:
        deaf = tree.start("deaf", DEAF, grace=0.2)
        tree.wait_for(deaf, lambda line: line == "here")
    assert deaf.process.returncode == -signal.SIGKILL


def test_a_step_that_fails_says_so():
    with ProcessTree(lambda name, line: None) as tree:
        tree.run("fine", [sys.executable, "-c", "print('done')"])
        with pytest.raises(PartDiedError, match="brief ended with 3"):
            tree.run("brief", BRIEF)


def test_a_part_that_is_never_ready_is_not_waited_for_for_ever():
    with ProcessTree(lambda name, line: None) as tree:
        patient = tree.start("patient", PATIENT)
        with pytest.raises(PartDiedError, match="was not ready"):
            tree.wait_for(patient, lambda line: line == "never", seconds=0.2)


def test_a_signal_asks_to_stop():
    with ProcessTree(lambda name, line: None) as tree:
        patient = tree.start("patient", PATIENT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert not tree.turn()
        assert tree.wait_for(patient, lambda line: line == "never") == ""


def test_nothing_outlives_a_supervisor_that_is_killed():
    supervisor = (
        "import sys; from northwind.process_tree import ProcessTree\n"
        "with ProcessTree(lambda name, line: None) as tree:\n"
        f"    part = tree.start('part', {WITH_CHILD!r})\n"
        "    tree.wait_for(part, lambda line: line == 'here')\n"
        "    print(part.pid, flush=True)\n"
        "    while tree.turn(): pass\n"
    )
    process = subprocess.Popen([sys.executable, "-c", supervisor], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    part = int(process.stdout.readline())
    process.kill()
    process.wait(10)
    process.stdout.close()
    assert gone(part)
