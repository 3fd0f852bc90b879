"""The tenant reached one of its limits, or a rule or connection was switched off by its breaker."""

from typing import Annotated, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import Field

from automation.extend import Automatable, Trigger, TriggerParams, TriggerSpec, register

Limit = Literal["events_kept", "rules", "running", "failing_rule", "failing_connection"]


@register
class LimitReached(Trigger):
    """Starts a rule when something of the tenant's is used up or was stopped; its events are about no record."""

    kind, label = "limit_reached", gettext_lazy("A limit is reached")
    has_record, has_data = False, True

    class Params(TriggerParams):
        """The limits that count; none means any. `event.limit` names it, `event.percent` is 80 or 100."""

        limits: Annotated[list[Limit], Field(max_length=5)] = Field(default_factory=list)

    def spec(self, params: Params) -> TriggerSpec:
        """What the rule listens to."""
        return TriggerSpec(kind=self.kind, model="", on=frozenset(params.limits))

    def sentence(self, params: Params, automatable: Automatable | None) -> str:
        """Which limits."""
        if not params.limits:
            return _("When a limit is reached")
        return _("When a limit is reached (%(limits)s)") % {"limits": ", ".join(params.limits)}
