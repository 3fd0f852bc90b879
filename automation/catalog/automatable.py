"""A model that rules may watch, read and change, and its fields as rules know them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import models

from automation.core.known import Follows


@dataclass(frozen=True, slots=True)
class Field:
    """One path of a model as rules know it.

    `type` is one of core.facts.FIELD_TYPES. `orm_path` is what the ORM calls it ("customer__plan"); `column` the column
    of the model's own table, "" where the value lives elsewhere. `watch`: changes are events; `read`: facts; `change`:
    actions may write it. `target` is the model ("tenants.membership") that a reference points to. `counts`: the value
    is the number of related rows; `whole`: a number is a whole one. `follows`: from which other field the database
    makes it, and what it is then. `label_text` may be lazy; `label` is the text.
    """

    path: str
    type: str
    label_text: Any
    orm_path: str
    column: str = ""
    choices: tuple[tuple[str, Any], ...] = ()
    watch: bool = False
    read: bool = True
    change: bool = False
    target: str = ""
    nullable: bool = False
    counts: bool = False
    whole: bool = False
    follows: Follows | None = None

    @property
    def label(self) -> str:
        """The field's name for people."""
        return str(self.label_text)

    @property
    def choice_values(self) -> frozenset[str]:
        """The values that a choice field can have; empty where any is allowed."""
        return frozenset(value for value, _label in self.choices)


@dataclass(frozen=True, slots=True)
class NoteTarget:
    """Where a note about a record is written: a model, its link to the record, its text field, and fixed values."""

    model: type[models.Model]
    record: str
    text: str = "body"
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Automatable:
    """A model that rules may listen to, by its name "helpdesk.ticket"; `fields` by path, in the order declared."""

    name: str
    model: type[models.Model]
    label_text: Any
    fields: Mapping[str, Field]
    note: NoteTarget | None = None
    name_field: str | None = None
    personal: tuple[str, ...] = ()  # fields that say who a person is; empty where a record is no person

    @property
    def label(self) -> str:
        """What one record is called by people, in small letters: "ticket"."""
        return str(self.label_text)

    @property
    def short_name(self) -> str:
        """What templates call the record: "ticket" for "helpdesk.ticket"."""
        return self.name.rpartition(".")[2]

    @property
    def watched(self) -> dict[str, Field]:
        """The fields whose changes are events."""
        return {path: item for path, item in self.fields.items() if item.watch}
