"""What a person is known by in stored texts, and which words name nobody."""

from collections.abc import Collection

from automation.catalog import registry
from automation.catalog.automatable import Automatable, Field
from automation.engine.retention.terms import PAGE
from automation.models import Event

PERSONAL_HISTORY = 10_000  # events of the person's own in which former names and addresses are looked for


def links_to(model: str) -> list[tuple[str, str]]:
    """The references of all models to that one, as (model, path)."""
    return [
        (entry.name, item.path)
        for entry in registry.models.values()
        for item in entry.fields.values()
        if item.target == model
    ]


def known_as(entry: Automatable, record: int) -> set[str]:
    """What the person's fields say now, and have said in the events that are kept."""
    paths = {path: entry.fields[path].orm_path for path in entry.personal if path in entry.fields}
    found: set[str] = set()
    for row in entry.model._default_manager.filter(pk=record).values_list(*paths.values()):
        found.update(str(value) for value in row if value)
    events = Event.objects.filter(model=entry.name, record=record).order_by("-id")
    for facts in events.values_list("facts", flat=True)[:PERSONAL_HISTORY].iterator(chunk_size=PAGE):
        for part in ("before", "after", "snapshot"):
            values = facts.get(part) or {}
            found.update(values[path] for path in paths if isinstance(values.get(path), str))
    return found


def machine_words() -> set[str]:
    """The values of choices, and what parameters are unless a rule says otherwise: these name nobody."""
    choices = {word for entry in registry.models.values() for item in entry.fields.values() for word in _choices(item)}
    params = (field for action in registry.actions.values() for field in action.Params.model_fields.values())
    return choices | {field.default for field in params if isinstance(field.default, str)}


def _choices(item: Field) -> Collection[str]:
    return item.choice_values if item.type == "choice" else ()
