"""Goes through all tenants bit by bit for rules that have lost what they name, or their owner."""

import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from automation.catalog.fingerprint import fingerprint
from automation.engine.by_itself import by_itself
from automation.engine.references import References, live_versions, switch_off_broken
from automation.engine.rules.owners import tell_owners_gone
from automation.models import Lane, Sweep, Worker
from automation.store import clock, timers
from tenants.context import NOBODY, acting_for
from tenants.models import Tenant

log = structlog.get_logger(__name__)
EVERY = 600.0  # seconds from the beginning of one round to that of the next
SLICE = 0.1  # seconds of work at a time: the pump has other things to do
HOLD = 60.0
REMEMBERED = 20_000
TENANTS = 500


@dataclass(frozen=True, slots=True)
class _Known:
    """A tenant as it was last seen: `sound` are the versions that were live and judged then, `same` says by what."""

    version: int
    same: tuple[int, bool]
    sound: frozenset[int]


@dataclass(slots=True)
class Tending:
    """One process at a time does a slice of the round, and the next goes on where it stopped, whichever it is.

    What admin pages and verbs do at once, a round makes up for: a user who was deactivated, a row deleted by a program.
    """

    worker: uuid.UUID
    every: float
    _fields_too: bool = False
    _known: OrderedDict[int, _Known] = field(default_factory=OrderedDict)

    def run(self) -> None:
        """Does a slice, where it is time and nobody else is about it."""
        if timers.take_sweep("tending", holder=self.worker, every=self.every, hold=HOLD) is None:
            return
        try:
            place = Sweep.objects.values_list("place", flat=True).get(pk="tending")
            if place is not None or self._begins():
                self._slice(place or 0)
        finally:
            timers.end_sweep("tending", holder=self.worker)

    def _begins(self) -> bool:
        return timers.take_sweep("tending round", holder=self.worker, every=EVERY, hold=0) is not None

    def _slice(self, place: int) -> None:
        live = Worker.objects.filter(expires_at__gt=clock.now())
        # While a release is rolled out, a field that this process doesn't know may be one that another one does.
        self._fields_too = not live.exclude(release__endswith=fingerprint()).exists()
        ends_at, at = time.monotonic() + SLICE, None
        for tenant_id in _open_tenants(place):
            self._tend(tenant_id)
            if time.monotonic() > ends_at:
                at = tenant_id
                break
        Sweep.objects.filter(pk="tending").update(place=at)

    def _tend(self, tenant_id: int) -> None:
        with by_itself("tending", tenant_id=tenant_id), acting_for(tenant_id, NOBODY):
            self._switch_off(tenant_id)
            tell_owners_gone()

    def _switch_off(self, tenant_id: int) -> None:
        """Judges only versions that weren't sound the last time, or all where what they may name isn't the same."""
        references = References(tenant_id)
        version = Lane.objects.values_list("rules_version", flat=True).get(tenant_id=tenant_id)
        same, known = (references.content(), self._fields_too), self._known.get(tenant_id)
        if known is not None and (known.version, known.same) == (version, same):
            return
        sound = known.sound if known is not None and known.same == same else frozenset[int]()
        live = live_versions()
        for rule in switch_off_broken(references, fields_too=self._fields_too, sound=sound):
            log.warning("broken rule", tenant_id=tenant_id, rule_id=rule.pk, became="off")
        self._known[tenant_id] = _Known(version, same, live)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _open_tenants(after: int) -> Iterator[int]:
    last = after
    while True:
        rows = Tenant.objects.filter(closed_at=None, pk__gt=last).order_by("pk").values_list("pk", flat=True)
        found = list(rows[:TENANTS])
        if not found:
            return
        yield from found
        last = found[-1]
