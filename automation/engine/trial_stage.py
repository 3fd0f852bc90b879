"""The stage of a trial: its own events only, nothing paused, a limit of time, and a door that leads nowhere."""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from django.utils.translation import gettext as _

from automation.catalog.action import Outcome
from automation.conf import Conf
from automation.core.breaker import CLOSED
from automation.engine.effects import ConnectionValues, EffectCall, guarded
from automation.engine.operate import Refused
from automation.engine.simulate import HeapTimers
from automation.models import Connection, StepExecution
from automation.outbound.masking import MASK
from automation.outbound.recording import Recording, Request
from automation.outbound.sockets import Sockets
from automation.store import events
from automation.store.claims import Begun, Claimed
from automation.store.events import EventRow
from automation.store.runs import RunRow

Answered = Literal["succeed", "fail", "timeout", "recorded"]
EVERY = "*"
UNREACHABLE = "https://{}.invalid"


class TookTooLong(Refused):
    """A trial holds its record while it runs, so it has little time."""


@dataclass
class TrialTimers(HeapTimers):
    """Knows of no event but `root` and what follows from it, and of no pause."""

    root: int = 0
    ends_at: float = 0.0  # by the monotonic clock

    def flags(self, tenant_id: int) -> tuple[bool, bool, int] | None:
        """A paused tenant may try things out."""
        return False, False, 0

    def outbox(self, tenant_id: int, limit: int) -> list[EventRow]:
        """The trial's own events, oldest first."""
        return events.of_root(tenant_id, self.root, unmatched=True)[:limit]

    def lock_runs(self, run_ids: Any) -> dict[int, RunRow]:
        """As if the lane weren't paused."""
        return {id_: replace(row, lane_paused=False) for id_, row in super().lock_runs(run_ids).items()}

    def begin_match(self, claimed: Claimed, *, runs: int) -> Begun:
        """As if the lane weren't paused."""
        return super().begin_match(claimed, runs=runs)._replace(paused=False, hold_new=False)

    def next(self) -> Claimed | None:
        """The next timer; raises `TookTooLong` when the time is up."""
        if time.monotonic() > self.ends_at:
            raise TookTooLong(
                _("The test took too long: the rule does too much, or somebody else is changing the record right now.")
            )
        return super().next()


def unreachable(connections: Mapping[str, Connection]) -> dict[str, Connection]:
    """The tenant's connections without their addresses and secrets: an action that goes around the door gets nowhere.

    What is missing stays missing, so that a step fails here where it would fail there.
    """
    found: dict[str, Connection] = {}
    for name, connection in connections.items():
        known = copy.copy(connection)
        known.breaker, known.concurrency = CLOSED, None  # a test waits for nobody
        known.endpoint = UNREACHABLE.format(f"connection-{connection.pk}")
        if connection.secret():
            known.set_secret(MASK)
        found[name] = known
    return found


@dataclass(slots=True)
class Answers:
    """Renders each effect in full, keeps what it would have sent, and answers as asked.

    `wanted` says by a step's id or path, or "*" for all others, how it goes; `recorded` are outputs of a past run by
    path, which answer where nothing else was asked for.
    """

    connections: Mapping[str, Connection]
    conf: Conf
    wanted: Mapping[str, Answered]
    recorded: Mapping[str, Any]
    sent: dict[int, list[Request]] = field(default_factory=dict)

    def __call__(self, call: EffectCall) -> Outcome:
        """The outcome of one effect; a notice is taken as sent."""
        if call.claimed.kind == "deliver":
            return Outcome.done()
        door = Recording(
            self._really,
            allow_loopback=self.conf.allow_loopback,
            key=call.door.key,
            timeout=call.timeout,
            sockets=Sockets(),
        )
        call.door.outbound = door
        outcome = guarded(call)
        self.sent[call.step_id or 0] = door.requests
        if outcome.state != "done":
            return outcome
        path = StepExecution.objects.values_list("path", flat=True).get(pk=call.step_id or 0)
        return self._answers[self._wanted(path)](path, outcome)

    @property
    def _answers(self) -> Mapping[str, Callable[[str, Outcome], Outcome]]:
        return {
            "succeed": lambda path, outcome: outcome,
            "fail": lambda path, outcome: Outcome.rejected(_("The test was told that this step fails.")),
            "timeout": lambda path, outcome: Outcome.timeout(_("The test was told that this step gets no answer.")),
            "recorded": lambda path, outcome: Outcome.done(self.recorded[path]) if path in self.recorded else outcome,
        }

    def _wanted(self, path: str) -> Answered:
        for name in (path, path.rpartition("/")[2], EVERY):
            if name in self.wanted:
                return self.wanted[name]
        return "recorded"

    def _really(self, name: str) -> ConnectionValues:
        found = self.connections[name]
        return ConnectionValues(found.name, found.kind, found.endpoint, found.secret(), found.settings)
