"""What compiling a definition works with: the trigger's model, the tenant's own names, and the problems found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from django.utils.translation import gettext as _

from automation.catalog.action import Action
from automation.catalog.automatable import Automatable, Field
from automation.catalog.trigger import Trigger
from automation.core.errors import Problem
from automation.core.facts import EVENT_PREFIX
from automation.core.spec import TriggerSpec


class Catalog(Protocol):
    """All registered kinds; the module `catalog.registry` is one."""

    @property
    def actions(self) -> Mapping[str, Action]:
        """By "kind@version"."""

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """By kind."""

    @property
    def models(self) -> Mapping[str, Automatable]:
        """By name."""


ANY_KIND = "*"
"""What references answer that don't judge the kinds of connections again: those of a version that was published."""


MEMBERS, GROUPS = "tenants.membership", "tenants.group"


class References(Protocol):
    """What belongs to the tenant; another tenant's things are as if they didn't exist."""

    def connection(self, name: str) -> str | None:
        """The kind of a connection, None when there is none of that name."""

    def member(self, member_id: int) -> bool:
        """Whether the member is one of the tenant."""

    def group(self, name: str) -> bool:
        """Whether the tenant has a group of that name."""

    def record(self, target: str, record_id: int) -> bool:
        """Whether the tenant has that record of a model, such as "helpdesk.customer"; members count while they stay."""


@dataclass
class Scope:
    """One compilation. `automatable` and `trigger` are None when the definition names none that is known."""

    catalog: Catalog
    references: References
    automatable: Automatable | None = None
    trigger: TriggerSpec | None = None
    problems: list[Problem] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    published: bool = False  # was checked when it was published, perhaps by a newer release than this process runs

    @property
    def has_data(self) -> bool:
        """Whether the events that the rule listens to bring values of their own."""
        return self.trigger is not None and self.catalog.triggers[self.trigger.kind].has_data

    @property
    def has_no_record(self) -> bool:
        """Whether the events that the rule listens to are about no record."""
        return self.trigger is not None and not self.catalog.triggers[self.trigger.kind].has_record

    def wrong(self, pointer: str, message: str, code: str) -> None:
        """Note a problem and go on."""
        self.problems.append(Problem(pointer, message, code))

    def field_at(self, path: str, pointer: str) -> Field | None:
        """The field that a path names, noted as read; None, with a problem noted, when it names none."""
        self.reads.add(path)
        if path.startswith(EVENT_PREFIX):
            return self._event_field(path, pointer)
        if self.automatable is None:
            if self.has_no_record:
                message = _("“%(field)s” can't be read: what this rule listens to is about no record.")
                self.wrong(pointer, message % {"field": path[:80]}, "unknown_field")
            return None
        found = self.automatable.fields.get(path)
        if found is None:
            names = {"field": path[:80], "model": self.automatable.label}
            self.wrong(
                pointer, _("“%(field)s” is not a field of a %(model)s that rules can read.") % names, "unknown_field"
            )
        return found

    def _event_field(self, path: str, pointer: str) -> Field | None:
        if self.trigger is not None and not self.has_data:
            self.wrong(pointer, _("Events of this kind have no data of their own (“event.…”)."), "unknown_field")
            return None
        name = path[len(EVENT_PREFIX) :]
        if not name or "." in name:
            self.wrong(pointer, _("“event.” is followed by one name."), "unknown_field")
            return None
        return Field(path=path, type="any", label_text=name, orm_path="")
