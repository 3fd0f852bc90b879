"""Rules and their comparisons in plain words, with the names of the people that they speak of."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from automation.catalog import registry
from automation.core.errors import DefinitionError
from automation.definitions import sentences
from automation.definitions.schema import LeafPart
from automation.definitions.tree import parts
from automation.engine import labels
from tenants.models import Membership

MEMBER = "tenants.membership"


class Names:
    """The names of the current tenant's records; its members are read once, when the first is asked for."""

    def of(self, model: str, record_id: int) -> str | None:
        """What people call a record; None where nobody knows."""
        if model == MEMBER:
            return self._members.get(record_id)
        return labels.label(model, record_id) if model in registry.models else None

    @cached_property
    def _members(self) -> dict[int, str]:
        return {member.pk: member.name for member in Membership.objects.select_related("user")}


def sentence(definition: Any, names: Names) -> str:
    """A rule in one sentence; empty for a definition that hasn't the shape of a rule."""
    try:
        return sentences.sentence(definition, registry, name_of=names.of)
    except DefinitionError:
        return ""


def comparisons(definition: Any, model: str) -> Mapping[str, str]:
    """Each comparison of a definition in words, by its id: "priority becomes urgent"."""
    names, entry = Names(), registry.models.get(model)
    found: dict[str, str] = {}
    for part in parts(definition):
        if part.kind == "condition":
            try:
                leaf = LeafPart.model_validate(part.value)
            except ValidationError:
                continue
            found[leaf.id] = sentences.condition_sentence(leaf, entry, name_of=names.of)
    return found
