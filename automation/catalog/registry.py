"""The catalog: what is registered, under which name, and what was wrong while registering."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.core import checks
from django.db import models as django_models
from django.utils.module_loading import autodiscover_modules

from automation.catalog.action import Action
from automation.catalog.automatable import Automatable, NoteTarget
from automation.catalog.fields import BadPath, build_fields, unfollowable
from automation.catalog.trigger import Trigger
from automation.core.known import Follows

actions: dict[str, Action] = {}
triggers: dict[str, Trigger] = {}
models: dict[str, Automatable] = {}
problems: list[tuple[str, str]] = []
"""(model name, message) of every path that names nothing; `manage.py check` fails with them."""

T = TypeVar("T", bound=type[Action] | type[Trigger])
E = TypeVar("E")
_PLUGINS = ("automation.actions", "automation.triggers")


class UnknownKind(LookupError):
    """A kind, version or model that nobody registered; the text names it."""


def register(cls: T) -> T:
    """Make an action or trigger known under its kind (and version); a second one under the same name is refused."""
    if issubclass(cls, Action):
        _add(actions, cls.name(), cls())
    else:
        _add(triggers, cls.kind, cls())
    return cls


def automatable(
    model: type[django_models.Model],
    *,
    watch: Sequence[str] = (),
    read: Sequence[str] = (),
    change: Sequence[str] = (),
    note: NoteTarget | None = None,
    label: Any = None,
    name_field: str | None = None,
    personal: Sequence[str] = (),
    follows: Mapping[str, tuple[str, Mapping[str, str]]] | None = None,
) -> Automatable:
    """Say what rules may do with a model: changes of `watch` are events, `read` are facts, `change` may be written.

    Paths go through relations with dots ("customer.plan"). A path that names nothing is left out and kept in
    `problems`. `name_field` is the field that says which record it is, for people. A record with `personal` fields is a
    person, who may be erased; what these fields say is looked for then. `follows` says of a field that the database
    makes from another one, {"status_category": ("status", {"new": "open", …})}, what it is for each choice of that one.
    """
    name = model._meta.label_lower
    fields, wrong = build_fields(model, watch=watch, read=read, change=change)
    problems.extend((name, message) for message in wrong)
    for path, (source, values) in (follows or {}).items():
        problem = unfollowable(fields, path, source, values)
        if problem:
            problems.append((name, problem))
        else:
            pairs = tuple((str(one), str(other)) for one, other in values.items())
            fields[path] = replace(fields[path], follows=Follows(source, pairs))
    problems.extend(
        (name, f"{path!r} is personal, but no field that rules know") for path in personal if path not in fields
    )
    entry = Automatable(
        name=name,
        model=model,
        label_text=model._meta.verbose_name if label is None else label,
        fields=fields,
        note=note,
        name_field=name_field,
        personal=tuple(personal),
    )
    models[name] = entry
    return entry


def discover() -> None:
    """Import all actions, triggers and every installed app's `automations` by name; doing it twice changes nothing.

    From then on `manage.py check` says what is wrong with what was registered.
    """
    checks.register(check)
    for package_name in _PLUGINS:
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package_name}.{module.name}")
    autodiscover_modules("automations")


def check(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """An error for every path that names nothing, and for every watched model whose changes would go unseen."""
    found = [checks.Error(message, obj=name, id="automation.E001") for name, message in problems]
    for entry in models.values():
        if entry.watched and not getattr(entry.model, "CAPTURES_CHANGES", False):
            message = f"{entry.name} is watched but doesn't inherit automation.extend.Watched"
            found.append(checks.Error(message, obj=entry.model, id="automation.E002"))
    return list(found)


def action(kind: str, version: int) -> Action:
    """The action of that kind and version; UnknownKind when there is none."""
    return _find(actions, f"{kind}@{version}", "action")


def trigger(kind: str) -> Trigger:
    """The trigger of that kind; UnknownKind when there is none."""
    return _find(triggers, kind, "trigger")


def model(name: str) -> Automatable:
    """What rules may do with the model of that name ("helpdesk.ticket"); UnknownKind when they may do nothing."""
    return _find(models, name, "automatable model")


def _add(registered: dict[str, Any], name: str, entry: object) -> None:
    if name in registered and type(registered[name]) is not type(entry):
        raise ValueError(f"{name!r} is registered twice: by {type(registered[name])!r} and {type(entry)!r}")
    registered[name] = entry


def _find(registered: dict[str, E], name: str, what: str) -> E:
    try:
        return registered[name]
    except KeyError:
        known = ", ".join(sorted(registered)) or "none"
        raise UnknownKind(f"there is no {what} {name!r}; known: {known}") from None


__all__ = [
    "BadPath",
    "UnknownKind",
    "action",
    "actions",
    "automatable",
    "discover",
    "model",
    "models",
    "problems",
    "register",
    "trigger",
    "triggers",
]
