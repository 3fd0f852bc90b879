"""The one place that knows the order of the stages: what came back, what was claimed, then the matchers."""

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from django.db import InterfaceError, InternalError, OperationalError

from automation.catalog import registry
from automation.conf import Conf
from automation.engine.advance import Advance
from automation.engine.effects import EffectDoor, Finished
from automation.engine.execute import Execute
from automation.engine.health import Health
from automation.engine.local_turn import LocalTurn
from automation.engine.match_turn import MatchTurn
from automation.engine.ports import Timers
from automation.engine.wave_turn import WaveTurn
from automation.store.claims import Claimed
from automation.store.waves import StepIds

log = structlog.get_logger(__name__)
# The database is away, or has ended this connection: nothing is wrong with the work in hand.
AWAY = (OperationalError, InterfaceError, InternalError)


def never() -> bool:
    """Nobody asks to stop."""
    return False


@dataclass(slots=True)
class Cycle:
    """One turn takes what was claimed through its stages; it is given timers, a door for effects, and chance."""

    timers: Timers
    door: EffectDoor
    conf: Conf
    armed: Callable[[int], object]
    rng: random.Random = field(default_factory=random.Random)
    stopping: Callable[[], bool] = never
    ids: StepIds = field(default_factory=StepIds)
    unsettled: list[Finished] = field(default_factory=list)  # came back, and could not be written yet
    waves: WaveTurn = field(init=False)
    locals: LocalTurn = field(init=False)
    matches: MatchTurn = field(init=False)
    health: Health = field(init=False)

    def __post_init__(self) -> None:
        advance = Advance(ids=self.ids.next, rng=self.rng, scale=self.conf.time_scale)
        worker: uuid.UUID = self.timers.worker
        self.waves = WaveTurn(self.timers, self.conf, self.ids, advance, Execute(worker, self.conf))
        self.locals = LocalTurn(self.timers, self.conf, self.ids, advance, self.armed)
        self.matches = MatchTurn(self.timers, self.conf, self.ids, advance)
        self.health = Health(self.timers.now, on=self.conf.breakers)

    def turn(self, claimed: Sequence[Claimed]) -> bool:
        """Settles what came back and works off what was claimed; False when there was nothing to do."""
        finished = self.door.finished()
        if not claimed and not finished and not self.unsettled:
            return False
        kinds = self._sorted(claimed)
        self._wave(finished, kinds["outside"])
        faults: list[Exception] = []
        for each in (*kinds["local"], *kinds["match"]):
            try:
                self._work(each)
            except AWAY:
                raise
            except Exception as error:
                # The others go on. The lease of this one stands until its deadline, and then counts as lost.
                log.warning("fault", timer_id=each.timer_id, error=f"{type(error).__name__}: {error}"[:500])
                faults.append(error)
        if faults:
            raise faults[0]
        return True

    def _work(self, each: Claimed) -> None:
        if each.kind == "match":
            self.matches.run(each, between=self._between, stopping=self.stopping)
        else:
            self.locals.run(each)
            self._between()

    def _wave(self, finished: Sequence[Finished], claimed: Sequence[Claimed]) -> None:
        # Where the database is away they are kept, and settled within their lease's time once it is back.
        self.unsettled += finished
        settled = self.unsettled
        done = self.waves.run(settled, claimed)
        self.unsettled = done.again
        for call in done.calls:
            self.door.submit(call)
        for tenant_id in done.heard:
            self.armed(tenant_id)
        for timer, seconds in done.put_backs:
            self.timers.put_back(timer, due_at=self.timers.now() + timedelta(seconds=seconds))
        if done.broken is not None:
            raise done.broken
        if done.places:
            self.timers.give(done.places)
        late = {id(one) for one in done.again}
        try:
            self.health.note(one for one in settled if id(one) not in late)
        except AWAY:
            raise
        except Exception:
            # Such as a connection that is deleted at this moment: what was claimed beside it goes on.
            log.exception("alarm", what="connection health")

    def _between(self) -> None:
        """Settles outcomes that threads have brought back meanwhile, so that a long batch delays no effect's settle."""
        finished = self.door.finished()
        if finished:
            self._wave(finished, [])

    def _sorted(self, claimed: Sequence[Claimed]) -> dict[str, list[Claimed]]:
        """Claimed timers by the way they go: matchers, local steps, and all that goes through a wave."""
        kinds: dict[str, list[Claimed]] = {"match": [], "local": [], "outside": []}
        for one in claimed:
            if one.kind == "match":
                kinds["match"].append(one)
            elif one.kind in ("step", "retry") and _is_local(one.step_kind, one.action):
                kinds["local"].append(one)
            else:
                kinds["outside"].append(one)
        return kinds


def _is_local(kind: str, action: str) -> bool:
    """Whether the pump does the step itself; an action that this process doesn't know goes back through a wave."""
    known = registry.actions.get(action)
    return kind != "action" or (known is not None and known.is_local())
