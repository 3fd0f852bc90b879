"""Finds the account that the embedded PostgreSQL runs as, and lets it pass to its files where root starts it."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
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


def let_pass(account: pwd.struct_passwd, programs: Path, *, folders: Iterable[Path], note: Path) -> None:
    """As root: let the account pass through all that leads to the folders, and read the programs.

    What was changed is kept in the file `note`, for `give_modes_back`.
    """
    if os.geteuid():
        return
    before = _modes(note)
    for folder in sorted({above for below in folders for above in below.parents} | {programs}):
        if not _may(folder, account.pw_uid, "x"):
            mode = stat.S_IMODE(folder.stat().st_mode)
            before.setdefault(str(folder), mode)
            note.write_text(json.dumps(before), encoding="utf-8")
            _say(f"PostgreSQL doesn't run as root: {account.pw_name} may pass through {folder} while it runs.")
            folder.chmod(mode | stat.S_IXOTH)
    if not _may(programs / "postgres", account.pw_uid, "r"):
        _let_read(programs.parent)


def give_modes_back(note: Path) -> None:
    """Undo what `let_pass` did, also for a command that was killed; what only root may undo waits for root."""
    if os.geteuid():
        return
    for folder, mode in _modes(note).items():
        if Path(folder).exists():
            Path(folder).chmod(mode)
    note.unlink(missing_ok=True)


def _modes(note: Path) -> dict[str, int]:
    return dict(json.loads(note.read_text(encoding="utf-8"))) if note.exists() else {}


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
