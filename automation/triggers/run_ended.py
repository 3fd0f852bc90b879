"""A run of another rule failed, was dead-lettered or finished."""

from functools import reduce
from typing import Annotated, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import Automatable, Trigger, TriggerParams, TriggerSpec, register

Ending = Literal["failed", "dead_lettered", "finished"]
_WORDS: dict[Ending, str] = {
    "failed": gettext_noop("fails"),
    "dead_lettered": gettext_noop("waits for a person"),
    "finished": gettext_noop("finishes"),
}


@register
class RunEnded(Trigger):
    """Starts a rule for the record of a run that ended; runs that were started so raise no such event themselves."""

    kind, label = "run_ended", gettext_lazy("A run of another rule ended")
    has_data = True

    class Params(TriggerParams):
        """The model of the run's record, and the ends that count.

        Conditions and templates may read `event.rule`, its `event.rule_id`, `event.run_id`, `event.outcome`,
        `event.reason`, `event.step` and `event.error`.
        """

        model: str
        on: Annotated[list[Ending], Field(min_length=1, max_length=3)]

    def spec(self, params: Params) -> TriggerSpec:
        """What the rule listens to."""
        return TriggerSpec(kind=self.kind, model=params.model, on=frozenset(params.on))

    def sentence(self, params: Params, automatable: Automatable) -> str:
        """Which ends of runs about what."""
        words = reduce(_either, (_(_WORDS[ending]) for ending in _WORDS if ending in params.on))
        return _("When a run of another rule for a %(model)s %(ends)s") % {"model": automatable.label, "ends": words}


def _either(one: str, other: str) -> str:
    return _("%(one)s or %(other)s") % {"one": one, "other": other}
