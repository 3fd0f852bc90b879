"""Actions that end their process, or hang and ignore that their socket is shut, as long as a file is there."""

import os
import time
from pathlib import Path
from typing import Annotated, Literal

from automation.extend import Action, ActionParams, ConnectionRef, Effect, LocalContext, Outcome, OutsideContext

DIED = 1


class Trap(Action):
    """An outside step that springs while the file `armed` exists, and posts to a webhook otherwise."""

    kind, version, label = "trap", 1, "Spring a trap"
    effects = (Effect.IDEMPOTENT, Effect.AT_LEAST_ONCE, Effect.AT_MOST_ONCE)

    class Params(ActionParams):
        """Where it posts to, what springs it, and what it does then."""

        connection: Annotated[str, ConnectionRef("webhook")]
        armed: str
        does: Literal["exit", "hang"]
        seconds: float = 0.0

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Leaves one line for each execution, then springs or posts."""
        leave_trace(params.armed, context.key)
        if Path(params.armed).exists():
            if params.does == "exit":
                time.sleep(params.seconds)
                os._exit(DIED)
            time.sleep(params.seconds)
        answer = context.outbound.post(
            params.connection, json={"trap": context.key}, headers={"webhook-id": context.key}
        )
        return Outcome.done({"status": answer.status})


class LocalTrap(Action):
    """A local step that ends its process while the file `armed` exists."""

    kind, version, label = "local_trap", 1, "Spring a trap inside"
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """What springs it, and for which subject only."""

        armed: str
        subject: str = ""

    def perform(self, params: Params, context: LocalContext) -> Outcome:
        """Leaves one line for each execution, then springs or does nothing."""
        if params.subject and context.current("subject") != params.subject:
            return Outcome.done(note="spared")
        leave_trace(params.armed, context.record_key)
        if Path(params.armed).exists():
            os._exit(DIED)
        return Outcome.done(note="not armed")


def leave_trace(armed: str, key: str) -> None:
    """Appends to the file of executions beside the trap's own, so that it survives the process."""
    with Path(f"{armed}.executed").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {key}\n")


def executions(armed: Path) -> list[str]:
    """The keys of all executions so far, in their order."""
    trace = Path(f"{armed}.executed")
    return [line.split()[1] for line in trace.read_text().splitlines()] if trace.exists() else []
