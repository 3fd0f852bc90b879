"""Finds the account that the embedded PostgreSQL runs as, and lets it pass to its files where root starts it."""

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ACCOUNT = "pgserver"


class EmbeddedDatabaseError(RuntimeError):
    """The embedded PostgreSQL can't be used; the message says what to do."""


def account_for(folder: Path) -> pwd.struct_passwd:
    """Return who the server runs as: whoever runs the command; for root the folder's owner, or an account of its own.

    PostgreSQL refuses root, and a user without an entry in the list of users.
    """
    user = os.geteuid()
    account = _known(user or folder.stat().st_uid)
    if user and account is None:
        raise EmbeddedDatabaseError(f"User {user} has no entry in /etc/passwd: add one, or set DATABASE_URL.")
    return account if account and account.pw_uid else _account_beside_root()


def like(model: Path, path: Path) -> None:
    """As root: give `path` the owner of `model`."""
    if not os.geteuid():
        owner = model.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def let_pass(account: pwd.struct_passwd, programs: Path, *, folders: Iterable[Path]) -> list[int]:
    """As root: let the account pass through all that leads to the folders, and read the programs.

    Returns open descriptors of the folders whose mode was changed, for the server to inherit: while it lives they
    tell other servers that lie below the same folders not to give the modes back yet.
    """
    if os.geteuid():
        return []
    ways = sorted({above for below in folders for above in below.parents} | {programs})
    closed = [folder for folder in ways if not _may(folder, account.pw_uid, "x")]
    held: list[int] = []
    if closed or _note().exists():
        with _modes() as modes:
            for folder in closed:
                mode = modes.setdefault(str(folder), stat.S_IMODE(folder.stat().st_mode))
                _say(f"PostgreSQL doesn't run as root: {account.pw_name} may pass through {folder} while it runs.")
                folder.chmod(mode | stat.S_IXOTH)
            held = [os.open(folder, os.O_RDONLY) for folder in ways if str(folder) in modes]
            for descriptor in held:
                fcntl.flock(descriptor, fcntl.LOCK_SH)
    if not _may(programs / "postgres", account.pw_uid, "r"):
        _let_read(programs.parent)
    return held


def give_modes_back() -> None:
    """Undo what `let_pass` did where no server needs it any more, also for one that was killed with its command.

    What only root may undo waits for root.
    """
    if os.geteuid() or not _note().exists():
        return
    with _modes() as modes:
        for folder, mode in list(modes.items()):
            if not Path(folder).exists():
                del modes[folder]
                continue
            descriptor = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(folder).chmod(mode)
                del modes[folder]
            os.close(descriptor)


def _note() -> Path:
    """Return where root keeps the modes to give back: one place for all checkouts, which outlives a crash."""
    return Path(pwd.getpwuid(0).pw_dir) / ".local" / "state" / "northwind" / "modes.json"


@contextlib.contextmanager
def _modes() -> Iterator[dict[str, int]]:
    """Give the noted modes by folder, for one command at a time, and keep what was changed in them."""
    note = _note()
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with note.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        modes: dict[str, int] = json.loads(file.read() or "{}")
        try:
            yield modes
        finally:
            file.truncate(0)
            file.write(json.dumps(modes))


def _may(path: Path, uid: int, what: str) -> bool:
    """Say whether a user may read ("r") or pass ("x"), by the owner's and everybody's bits."""
    found = path.stat()
    bits = {"r": (stat.S_IRUSR, stat.S_IROTH), "x": (stat.S_IXUSR, stat.S_IXOTH)}[what]
    return bool(found.st_mode & bits[found.st_uid != uid])


def _let_read(folder: Path) -> None:
    """Let everybody read the programs: the package holds no secret, and was installed under a strict umask."""
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _known(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _account_beside_root() -> pwd.struct_passwd:
    """Return the account used where only root is there; it is made once, and `nobody` stands in for it."""
    program = shutil.which("useradd")
    if program and not any(entry.pw_name == ACCOUNT for entry in pwd.getpwall()):
        command = [program, "--system", "--no-create-home", ACCOUNT]
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603  # no input of anybody's
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        return pwd.getpwnam("nobody")


def _say(text: str) -> None:
    """Tell the person at the terminal, apart from the command's output."""
    sys.stderr.write(f"{text}\n")
