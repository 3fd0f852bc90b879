"""Which batches of imports the rules that run once for each have run for."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from automation.engine.ruleset import Compiled
from automation.store import served
from automation.store.events import EventRow

Pair = tuple[int, str]


@dataclass(slots=True)
class ServedBatches:
    """Pairs of rule and batch: those that are known to be served, and those of them that aren't written yet."""

    _known: set[Pair] = field(default_factory=set)
    _new: list[tuple[int, str, int]] = field(default_factory=list)

    def mark(self) -> "ServedBatches":
        """A copy of what is committed, so that a transaction that is undone serves nothing."""
        return ServedBatches(set(self._known))

    def ask(self, tenant_id: int, matched: Iterable[tuple[Compiled, EventRow]]) -> None:
        """Reads which of these are served, in one statement; in none where no rule of them runs once for a batch."""
        pairs = {_pair(rule, event) for rule, event in matched if _once(rule, event)}
        if pairs:
            self._known |= served.known(tenant_id, sorted(pairs))

    def knows(self, rule: Compiled, event: EventRow) -> bool:
        """Whether the rule has had its run for the batch that the event belongs to."""
        return bool(self._known) and _once(rule, event) and _pair(rule, event) in self._known

    def serve(self, rule: Compiled, event: EventRow) -> None:
        """The rule runs for this event: where it runs once for a batch, this was it."""
        if _once(rule, event):
            self._known.add(_pair(rule, event))
            self._new.append((*_pair(rule, event), event.id))

    def claim(self, tenant_id: int) -> None:
        """Writes what is newly served, in the caller's transaction; `Stale` where somebody else was faster."""
        if self._new:
            served.claim(tenant_id, self._new)
            self._new = []


def _once(rule: Compiled, event: EventRow) -> bool:
    return event.source == "import" and rule.spec is not None and rule.spec.imports == "once"


def _pair(rule: Compiled, event: EventRow) -> Pair:
    return rule.rule_id, event.batch
