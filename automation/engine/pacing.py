"""Lets events that a pause has kept start their runs at the rate of its drip, ahead of everything that came later."""

from collections.abc import Sequence
from datetime import datetime

from automation.engine.match import Judged
from automation.engine.stopped import Pace
from automation.store import drips


def admitted(pace: Pace | None, chosen: Sequence[Judged]) -> tuple[list[Judged], datetime | None]:
    """The first of these events, those that may start their runs now, and when the next one may, if any is left."""
    kept = [] if pace is None else [one for one in chosen if one.event.id <= pace.kept_until]
    if pace is None or not kept:
        return list(chosen), None
    granted, next_at = drips.admit(pace.drip_id, wanted=len(kept))
    if granted >= len(kept):
        return list(chosen), None
    return list(chosen[:granted]), next_at
