"""Without DATABASE_URL commands share an embedded PostgreSQL that the last one stops."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from northwind.embedded import Server

ROOT = Path(__file__).resolve().parents[2]
ASK = "select upper('ö'), current_setting('max_connections')::int, current_setting('listen_addresses')"
COMMAND = f"""
import signal, sys, psycopg
from northwind.database import ensure
# Tests that run in the background, or under nohup, inherit that these are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with psycopg.connect(ensure()) as connection:
    found = connection.execute({ASK!r}).fetchone()
print(*found, flush=True)  # when nothing of it is under way any more
sys.stdin.readline()
"""

pytestmark = pytest.mark.acceptance


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a checkout" / ".data"
    folder.parent.mkdir(mode=0o700)
    yield folder
    server = Server(folder)
    with server.alone():
        server.stop()


@contextlib.contextmanager
def command(data: Path, code: str = COMMAND) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment | {"DATA_DIR": str(data), "LC_ALL": "C"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def ready(program: subprocess.Popen[str]) -> str:
    """Return what the command read from its database, once it has it."""
    assert program.stdout is not None
    line = program.stdout.readline().strip()
    if not line:
        assert program.stderr is not None
        pytest.fail(program.stderr.read())
    return line


def finish(program: subprocess.Popen[str]) -> None:
    program.communicate("\n", timeout=60)
    assert program.returncode == 0


def is_running(data: Path) -> bool:
    return Server(data).is_running()


def test_a_command_starts_the_server_and_stops_it_at_its_end(data):
    with command(data) as first:
        assert ready(first) == "Ö 200"  # upper case whatever the environment's locale; it listens on no address
        assert is_running(data)
        finish(first)
    assert not is_running(data)


def test_the_data_is_there_the_next_time(data):
    code = COMMAND.replace(repr(ASK), "'create table kept (n int)'").replace(".fetchone()", ".statusmessage.split()")
    with command(data, code) as program:
        assert ready(program) == "CREATE TABLE"
        finish(program)
    with command(data, COMMAND.replace(repr(ASK), "'select count(*) from kept'")) as program:
        assert ready(program) == "0"
        finish(program)


def test_commands_at_once_share_one_server_and_the_last_one_stops_it(data):
    with command(data) as first, command(data) as second, command(data) as third:
        for program in (first, second, third):
            ready(program)
        pid = Server(data).status()[0]
        finish(first)
        finish(third)
        assert is_running(data)
        with command(data) as late:
            ready(late)
            finish(second)
            assert Server(data).status()[0] == pid
            finish(late)
    assert not is_running(data)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_told_to_end_stops_the_server(data, number):
    with command(data) as program:
        ready(program)
        program.send_signal(number)
        program.wait(60)
        assert program.returncode != 0
    assert not is_running(data)


def test_after_a_command_was_killed_the_next_one_uses_its_server_and_stops_it(data):
    with command(data) as killed:
        ready(killed)
        killed.kill()
        killed.wait(10)
    assert is_running(data)
    with command(data) as program:
        ready(program)
        finish(program)
    assert not is_running(data)


def test_after_the_server_was_killed_the_next_command_starts_it_again(data):
    with command(data) as program:
        ready(program)
        os.kill(int(Server(data).status()[0]), signal.SIGKILL)
        with command(data) as other:
            assert ready(other) == "Ö 200"
            finish(other)
            assert is_running(data)  # the first one still counts
        finish(program)
    assert not is_running(data)


def test_a_process_id_that_now_belongs_to_another_program_is_left_alone(data):
    with command(data) as program:
        ready(program)
        finish(program)
    pid_file = data / "pg" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{data / 'pg'}\n1\n5432\n{data / 'pg'}\n\n0 0\nready\n")
    with command(data) as program:
        assert ready(program)
        finish(program)
    assert not is_running(data)


def test_a_first_start_that_was_interrupted_is_begun_anew(data):
    (data / "pg.new").mkdir(parents=True)
    (data / "pg.new" / "PG_VERSION").write_text("18\n")
    with command(data) as program:
        assert ready(program)
        finish(program)


@pytest.mark.parametrize("name", ["long" * 25, "with, a comma", 'with "quotes"'])
def test_a_path_that_can_not_be_a_sockets_works(tmp_path, name):
    data = tmp_path / name / ".data"
    data.parent.mkdir()
    server = Server(data)
    assert server.socket_folder.parent == Path("/tmp")  # noqa: S108
    with command(data) as program:
        assert ready(program)
        assert stat.S_IMODE(server.socket_folder.stat().st_mode) == 0o700
        finish(program)
    assert not is_running(data)


def test_a_socket_folder_that_somebody_else_made_is_refused(tmp_path):
    data = tmp_path / ("long" * 25) / ".data"
    data.mkdir(parents=True)
    trap = Server(data).socket_folder
    trap.symlink_to(tmp_path)
    try:
        with command(data) as program:
            _, errors = program.communicate(timeout=60)
        assert "belongs to somebody else" in errors
    finally:
        trap.unlink()


def test_data_of_another_major_version_is_refused_with_its_place(data):
    (data / "pg").mkdir(parents=True)
    (data / "pg" / "PG_VERSION").write_text("16\n")
    with command(data) as program:
        _, errors = program.communicate(timeout=60)
    assert f"{data / 'pg'} wasn't made by PostgreSQL 18" in errors


def test_a_forked_child_leaves_the_server_to_its_parent(data):
    code = COMMAND.replace("sys.stdin", "import os\nif os.fork() == 0:\n    sys.exit()\nos.wait()\nsys.stdin")
    with command(data, code) as program:
        ready(program)
        with command(data) as other:  # has its turn only when the child has ended
            ready(other)
            finish(other)
        assert is_running(data)
        finish(program)
    assert not is_running(data)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another account")
def test_root_gets_its_folders_modes_back(data):
    folder = data.parent
    with command(data) as program:
        ready(program)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o701
        finish(program)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another account")
def test_a_folder_above_two_servers_gets_its_mode_back_with_the_last_one(data):
    shared = data.parent
    with command(shared / "one") as first, command(shared / "two") as second:
        ready(first)
        ready(second)
        finish(first)
        assert stat.S_IMODE(shared.stat().st_mode) == 0o701
        with command(shared / "one") as again:
            ready(again)
            finish(second)
            assert stat.S_IMODE(shared.stat().st_mode) == 0o701
            finish(again)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another account")
def test_the_modes_come_back_also_after_a_crash_of_everything(data):
    with command(data) as program:
        ready(program)
        os.kill(int(Server(data).status()[0]), signal.SIGKILL)
        program.kill()
        program.wait(10)
    with command(data) as program:
        ready(program)
        finish(program)
    assert stat.S_IMODE(data.parent.stat().st_mode) == 0o700


def test_nobody_but_its_account_reaches_the_server(data):
    with command(data) as program:
        ready(program)
        assert stat.S_IMODE((data / "pg").stat().st_mode) == 0o700
        with psycopg.connect(host=str(data / "pg"), user="postgres", dbname="northwind") as connection:
            assert connection.execute("show listen_addresses").fetchone() == ("",)
        finish(program)
