"""Runs a command line of the project, and says in one line what is wrong with the place where it is run."""

import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from northwind.accounts import EmbeddedDatabaseError
from northwind.database import ensure_for


def run(arguments: Sequence[str]) -> None:
    """Does what `manage.py` was told; with `--traceback` a fault of the place is shown as one of the program is."""
    try:
        ensure_for(arguments)
        execute_from_command_line(list(arguments))
    except KeyboardInterrupt:  # by Ctrl-C: what is committed stays
        sys.exit(130)
    except (ImproperlyConfigured, EmbeddedDatabaseError, OperationalError) as error:
        said = _said(error)
        if not said or "--traceback" in arguments:
            raise
        sys.exit(said)


def _said(error: Exception) -> str:
    """The fault in one line; "" for one of the program."""
    line = " ".join(str(error).split())
    if not isinstance(error, OperationalError):
        return line
    # What a server answers has a code; without one there was none that answered.
    return "" if getattr(error.__cause__, "sqlstate", None) else f"The database can't be reached: {line}"
