"""An event with a name of its own, posted by an integrator or by the host."""

from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import StringConstraints

from automation.extend import Automatable, Trigger, TriggerParams, TriggerSpec, register


@register
class CustomEvent(Trigger):
    """Starts a rule for an event of that name about a record of the model."""

    kind, label = "custom_event", gettext_lazy("A named event is posted")
    has_data = True

    class Params(TriggerParams):
        """The model that the event is about, and its name."""

        model: str
        name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.]{0,79}$")]

    def spec(self, params: Params) -> TriggerSpec:
        """What the rule listens to."""
        return TriggerSpec(kind=self.kind, model=params.model, name=params.name)

    def sentence(self, params: Params, automatable: Automatable) -> str:
        """Which event of what."""
        return _("When the event “%(name)s” is posted for a %(model)s") % {
            "name": params.name,
            "model": automatable.label,
        }
