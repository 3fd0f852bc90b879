"""What the question why a rule ran, or didn't, is answered with, as plain values."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from automation.core.gates import Gate
from automation.models import Event, Rule, Run


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of the condition in words, with the value read for it, and whether the verdict hung on it.

    `reason` as in a `LeafReport`, or "unchanged": it asks for a change that the event doesn't carry.
    """

    id: str
    text: str
    wanted: Any
    read: Any
    result: str
    reason: str
    decided: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one event at one rule.

    `gate` is where its way ended and `reason` the code that everything else uses for it. `version` is the number of
    the version that was live then, None where the rule wasn't judged. `agrees` is false where judging again comes to
    another end than the engine did: then something was changed by hand, or since the event was kept.
    """

    event: Event
    rule_id: int
    rule_name: str
    gate: Gate
    reason: str
    sentence: str
    version: int | None
    comparisons: tuple[Comparison, ...]
    run: Run | None
    agrees: bool

    @property
    def ran(self) -> bool:
        """Whether a run of the rule was started for the event."""
        return self.gate is Gate.RAN


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rule and a record over a time: one answer an event, oldest first, and a sentence for all of them.

    `more` says that there are further events after `answers[-1]`; `earlier`, where no time was asked for and these are
    the newest, that there are others before them.
    """

    rule: Rule
    model: str
    record: int
    record_label: str
    answers: tuple[Answer, ...]
    sentence: str
    more: bool
    earlier: bool

    @property
    def counts(self) -> dict[str, int]:
        """How many events ended at each gate."""
        return dict(Counter(str(answer.gate) for answer in self.answers))
