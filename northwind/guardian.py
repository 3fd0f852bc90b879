"""Ends the processes of a tree whose supervisor died without a word, and then the embedded database it used."""

import os
import signal
import sys
import time

from northwind import database

GRACE = 15.0  # seconds that a process gets to end by itself
POLL = 0.05


def main() -> None:
    """Reads the pids of process groups from stdin, one a line, until the supervisor closes it; then ends what is left.

    Runs in a session of its own, so that nothing that ends the supervisor ends this process too. Without DATABASE_URL
    it counts as a user of the embedded server meanwhile, so that a supervisor that is killed leaves no server behind.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    database.ensure()
    sys.stdout.write("watching\n")
    sys.stdout.flush()
    end([int(line) for line in sys.stdin])


def end(groups: list[int]) -> None:
    """Asks the leader of each group to end; kills what is left of the group when its leader has gone, or doesn't go."""
    left = [group for group in groups if is_there(group)]
    for group in left:
        _send(group, signal.SIGTERM)
    ends_at = time.monotonic() + GRACE
    while left:
        time.sleep(POLL)
        left = [group for group in left if is_there(group)]
        for group in left:
            if not _send(group, 0) or time.monotonic() > ends_at:
                _send(-group, signal.SIGKILL)


def is_there(group: int) -> bool:
    """Say whether a process of the group is left."""
    return _send(-group, 0)


def _send(target: int, number: int) -> bool:
    """Send a signal to a process, or to a group by its negative number; False when nobody is there."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
