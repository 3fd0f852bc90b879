"""A person started the rule on a record."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from automation.extend import Automatable, Trigger, TriggerParams, TriggerSpec, register


@register
class Manual(Trigger):
    """Starts a rule when somebody asks for it, on one record or on a selection."""

    kind, label = "manual", gettext_lazy("A person starts it")

    class Params(TriggerParams):
        """The model on whose records it can be started."""

        model: str

    def spec(self, params: Params) -> TriggerSpec:
        """What the rule listens to."""
        return TriggerSpec(kind=self.kind, model=params.model)

    def sentence(self, params: Params, automatable: Automatable) -> str:
        """On what it can be started."""
        return _("When somebody starts this rule on a %(model)s") % {"model": automatable.label}
