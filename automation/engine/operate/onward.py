"""Lets a run go on from where a person has put it: the next step with its wake-up, or the run's end."""

import random
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from automation.conf import load
from automation.engine import ruleset, taking
from automation.engine.advance import Advance
from automation.engine.ended import add_ended
from automation.engine.operate import Refused
from automation.engine.progress import RunInHand
from automation.store import by_hand, clock, runs, timers
from automation.store.timers import NewTimer
from automation.store.waves import StepIds, Wave


def in_hand(run_id: int) -> RunInHand:
    """A run that the caller has locked; `Refused` where its version can't be read any more."""
    row = runs.lock([run_id])[run_id]
    compiled = ruleset.by_version([row.version_id]).get(row.version_id)
    if compiled is None or compiled.spec is None:
        raise Refused(_("The version of the rule that this run follows can't be read any more."))
    return taking.in_hand(row, compiled, now=clock.now())


def go_on(run: RunInHand, index: int | None, *, begun: bool = True) -> None:
    """Enters the node of that index (None: the run has succeeded); the next timer of a paused run is held.

    `begun`: whether a step of the run is done. The timer and its lane are the last locks that this takes.
    """
    wave, paused = Wave(), run.was == "paused"
    # Jitter is for retries, and none is decided here.
    advance = Advance(ids=StepIds().next, rng=random.Random(0), scale=load().time_scale)  # noqa: S311
    follow_up = advance.enter(run, index, wave)
    if run.state == "pending" and begun:
        run.state = "running"
    add_ended(wave, [run])
    wave.write()
    if wave.events:
        transaction.on_commit(partial(timers.arm_match, run.event.tenant_id))
    if not paused or run.state == "succeeded":
        by_hand.set_reached(run.id, run.state)
    if follow_up.kind is not None:
        tenant_id = run.event.tenant_id
        timers.set_timers([NewTimer(tenant_id, follow_up.kind, follow_up.due_at, run.id, follow_up.step_id)])
    if paused:
        timers.hold_runs([run.id])
