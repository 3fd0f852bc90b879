"""A worker on the database's own lanes, for tests of what the in-process runner doesn't have."""

import random
import uuid
from collections.abc import Callable
from datetime import timedelta

from django.db.models import F

from automation.catalog.action import Outcome
from automation.conf import load
from automation.engine.cycle import Cycle
from automation.engine.effects import EffectCall
from automation.engine.ports import LaneTimers
from automation.engine.simulate import CapturedEffects, succeed
from automation.models import Lane, Timer
from automation.store import claims, timers
from tenants.context import every_tenant

Script = Callable[[EffectCall], Outcome]


class Crew:
    """A worker on the database's own lanes, whose effects are answered by `script` and go nowhere."""

    def __init__(self, tenant_id: int) -> None:
        self.tenant_id = tenant_id
        self.script: Script = succeed
        self.effects = CapturedEffects(self.answer)
        self.worker = uuid.uuid4()
        claims.enlist(self.worker, pool="northwind", release="", host="alpha", pid=7, lease=3600)
        self.cycle = Cycle(LaneTimers(self.worker), self.effects, load(), armed=timers.arm_match, rng=random.Random(0))

    def answer(self, call: EffectCall) -> Outcome:
        """As the script of the moment says."""
        return self.script(call)

    def work(self) -> None:
        """Does what is due now, until nothing is."""
        timers.arm_match(self.tenant_id)
        with every_tenant():
            for _turn in range(200):
                found = claims.claim(
                    self.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False
                )
                if not self.cycle.turn(found) and not found:
                    return
        raise AssertionError("the work doesn't end")

    def skip_waiting(self) -> None:
        """Lets every timer fall due, and works."""
        Timer.objects.filter(state="pending").update(due_at=F("due_at") - timedelta(hours=1))
        Lane.objects.update(due_hint=True)
        self.work()

    def calls(self) -> list[tuple[str, str]]:
        """(step's key, its attempt) of every step's effect so far; mails that tell people apart."""
        return [(call.door.key, str(call.door.attempt)) for call in self.effects.calls if call.step_id is not None]
