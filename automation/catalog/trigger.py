"""What a trigger is: its kind, its parameters, and what it makes a rule listen to."""

from typing import Any, ClassVar

from automation.catalog.automatable import Automatable
from automation.catalog.params import TriggerParams
from automation.core.spec import TriggerSpec

__all__ = ["Trigger", "TriggerParams", "TriggerSpec"]


class Trigger:
    """Base of all triggers: one subclass per kind, in a file of its own, made known by `register`.

    `has_record`: its events are about a record of a model. `has_data`: they bring values of their own ("event.name").
    """

    kind: ClassVar[str]
    label: ClassVar[Any]
    Params: ClassVar[type[TriggerParams]]
    has_record: ClassVar[bool] = True
    has_data: ClassVar[bool] = False

    def spec(self, params: Any) -> TriggerSpec:
        """What the rule listens to."""
        raise NotImplementedError

    def check(self, params: Any, automatable: Automatable) -> list[tuple[str, str]]:
        """What is wrong with parameters beyond their schema: (JSON pointer below the parameters, message)."""
        return []

    def sentence(self, params: Any, automatable: Any) -> str:
        """ "When a ticket is updated": a whole gettext message with named places."""
        raise NotImplementedError
