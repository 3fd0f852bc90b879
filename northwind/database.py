"""Says where the database is: DATABASE_URL, or else the embedded PostgreSQL, which commands start and stop."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import IO
from urllib.parse import quote, urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured

from northwind.embedded import Server

NAME = "northwind"
VARIABLE = "DATABASE_URL"

# Commands that never ask the database; every other one gets it. Reading the settings starts nothing.
WITHOUT_DATABASE = frozenset(
    {"", "help", "version", "--help", "--version", "-h", "check", "collectstatic", "compilemessages", "diffsettings"}
    | {"automation_catalogue", "findstatic", "makemessages", "startapp"}
)

_use: list[IO[str]] = []


def server() -> Server:
    """Return the embedded server of this checkout, or of the folder that DATA_DIR names; nothing is started."""
    folder = os.environ.get("DATA_DIR") or Path(__file__).resolve().parent.parent / ".data"
    return Server(Path(folder).absolute())


def address() -> str:
    """Return the URL of the database; for the embedded one it is known before the server runs.

    Raises ImproperlyConfigured for one that isn't PostgreSQL's. It may hold a password, which no message repeats.
    """
    given = os.environ.get(VARIABLE, "")
    if given and urlsplit(given).scheme not in ("postgresql", "postgres"):
        raise ImproperlyConfigured(
            f"{VARIABLE} has to be the address of a PostgreSQL: postgresql://user@host/database."
        )
    return given or f"postgresql://postgres:@/{NAME}?host={quote(str(server().socket_folder))}"


def renamed(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return urlsplit(url)._replace(path=f"/{quote(name)}").geturl()


def ensure_for(arguments: Sequence[str]) -> None:
    """Do `ensure` where the command of a `manage.py` command line asks the database."""
    command = arguments[1] if len(arguments) > 1 else ""
    if command not in WITHOUT_DATABASE and not {"--help", "-h"} & set(arguments):
        ensure()


def ensure() -> str:
    """Return the URL of a database that runs, and put it into DATABASE_URL for the processes this one starts.

    Without DATABASE_URL the embedded server is started where it doesn't run. Whoever uses it last stops it, when its
    process ends: by itself, by an error, or by SIGTERM or SIGHUP where nothing else handles them. After a SIGKILL the
    next command stops it. Raises EmbeddedDatabaseError with what to do.
    """
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    here = server()
    _use.append(here.uses())
    atexit.register(_release, here, os.getpid())
    with here.alone():
        if not here.settle():
            here.start()
        _make_database()
    _end_in_order()
    os.environ[VARIABLE] = address()
    return os.environ[VARIABLE]


def is_embedded() -> bool:
    """Say whether this process uses the embedded server, by `ensure`."""
    return bool(_use)


def _make_database() -> None:
    with psycopg.connect(renamed(address(), "postgres"), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone():
            connection.execute(
                f"CREATE DATABASE {NAME} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER builtin "
                "BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"
            )


def _release(here: Server, owner: int) -> None:
    """Stop using the server, and stop it when nobody else does; a forked child does neither."""
    if os.getpid() != owner:
        return
    with here.alone():
        # Closed, not unlocked: a child that still has the file goes on counting.
        while _use:
            _use.pop().close()
        if not here.is_used():
            here.stop()


def _end_in_order() -> None:
    """Let the signals that would end the process at once end it so that `_release` runs."""
    if threading.current_thread() is not threading.main_thread():
        return
    owner = os.getpid()

    def leave(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == owner:
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)
