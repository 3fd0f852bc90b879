"""Sends the effects of the in-process runner through the real door, as a thread of a pump does."""

from automation.catalog.action import Outcome
from automation.engine.effects import EffectCall, guarded
from automation.outbound import Outbound, Sockets


def through_the_door(call: EffectCall) -> Outcome:
    """Performs an effect for real; servers on loopback can be reached."""
    door = call.door
    door.outbound = Outbound(
        door.connection, allow_loopback=True, key=door.key, timeout=call.timeout, sockets=Sockets()
    )
    return guarded(call)
