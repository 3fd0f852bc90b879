"""Writes the catalogue as Markdown: what actions, triggers, records and settings there are, read from the code."""

import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, get_args

from pydantic import BaseModel

from automation.catalog.action import Action, Effect
from automation.catalog.automatable import Automatable, Field
from automation.catalog.params import marked_schema
from automation.catalog.trigger import Trigger
from automation.conf import Conf
from automation.core.spec import Retry

EFFECTS = {
    Effect.DB_LOCAL: "exactly once: the change commits together with the outcome of its step",
    Effect.IDEMPOTENT: "sent again under the same key until it is confirmed; a receiver that knows keys shows it once",
    Effect.AT_LEAST_ONCE: "sent again after a doubtful try, so it may come twice",
    Effect.AT_MOST_ONCE: "never sent again after a doubtful try, which waits for a person",
}
MARKERS = {
    "template": "a template for {word}",
    "connection_ref": "the name of a connection of kind {word}",
    "field_ref": "the path of a field that rules may {word}",
    "group_ref": "the name of a group",
    "member": "the number of a member",
    "tags": "a list of tags",
}
# What each setting is, with its unit; the names are those of automation.conf.
SETTINGS = {
    "threads": "effects that one pump has on their way at a time",
    "claim_batch": "timers that one claim takes at most",
    "take": "timers of one lane that one claim takes at most",
    "pump_budget": "seconds that a pump works before a fresh one follows it",
    "poll": "seconds between two looks for due work, give or take 20 %",
    "match_batch": "events that a matcher reads at once",
    "match_slice": "seconds after which a matcher goes to the end of the line, though more is left",
    "bell": "seconds between two looks of `run_workers` for a pump that is missing",
    "lease": "seconds for which a worker that has fallen silent keeps its timers",
    "beat": "seconds between two renewals of a lease",
    "deadline": "seconds that a timer may stay claimed; 5 more, and it is taken back",
    "lost_limit": "lost leases in a row that make a step or an event poison",
    "lost_alone": "lost leases in a row from which on work is done with nothing beside it in its process",
    "sweep": "seconds between two rounds of chores: lost leases, sleeping lanes, forgotten events, counters",
    "control_poll": "seconds between two looks for cancelled runs whose effect is on its way, bulk jobs, drips, records"
    " to be taken up, and pauses that end by themselves",
    "retention": "seconds between two rounds of retention for a tenant; 0: only by `automation_prune`",
    "step_timeout": "seconds that one mail of a notice may take",
    "step_timeout_max": "seconds that an outside step may take, whatever it asks for",
    "allow_loopback": "lets connections lead to this machine, and without TLS ¹",
    "allowed_networks": "private networks that connections may lead to, by https, such as `10.20.0.0/16, fd00:20::/32`",
    "loop_guard": "off: no rule is suppressed for a loop, but for the budget ²",
    "loop_stop": "runs that one root event may cause below its first two levels ²",
    "breakers": "off: connections that fail are called on and on, and rules that fail go on ²",
    "idempotency_keys": "off: each attempt of a step has a key of its own ²",
    "match_ahead": "off: with all threads waiting for the outside, events wait as well ²",
    "site": "where people reach the pages, such as `https://desk.example.com`: mails about failures link to it",
    "time_scale": "the factor by which delays are multiplied, such as 0.01 ¹",
}
GENERATED = "<!-- Written by `manage.py automation_catalogue docs`. -->"
JSON_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def actions_page(actions: Iterable[Action]) -> str:
    """The page of all actions, in the order of their names."""
    found = sorted(actions, key=lambda one: one.name())
    head = [
        "# Actions",
        "",
        GENERATED,
        "",
        "What the steps of rules can do. How effects are promised is in [engine.md](engine.md), how to add one in"
        " [extending.md](extending.md).",
        "",
        *_table(["action", "", "effect"], [[_link(one), str(one.label), _effects(one)] for one in found]),
    ]
    return _page([*head, *(line for one in found for line in _action(one))])


def triggers_page(triggers: Iterable[Trigger], models: Iterable[Automatable]) -> str:
    """The page of all triggers, and of the records that rules listen to."""
    lines = ["# Triggers and records", "", GENERATED, "", "What rules listen to, and what they may read and change."]
    for trigger in sorted(triggers, key=lambda one: one.kind):
        lines += ["", f"## `{trigger.kind}`: {trigger.label}", "", *_prose(type(trigger))]
        lines += ["", f"Parameters: {_lower(trigger.Params)}", "", *_parameters(trigger.Params)]
    for entry in sorted(models, key=lambda one: one.name):
        note = f" Notes about it are written as a {entry.note.model._meta.verbose_name}." if entry.note else ""
        lines += ["", f"## `{entry.name}`", "", f"Templates call it `{entry.short_name}`.{note}", ""]
        lines += _table(["field", "type", "event", "read", "change"], map(_field, entry.fields.values()))
    return _page(lines)


def settings_table() -> str:
    """The engine's settings with their defaults, as a table."""
    rows = [
        [f"`AUTOMATION_{one.name.upper()}`", _shown(one.default), SETTINGS.get(one.name, "")] for one in fields(Conf)
    ]
    return "\n".join(_table(["setting", "default", "is"], rows))


def _action(action: Action) -> Iterator[str]:
    yield from ["", f"## `{action.name()}`: {action.label}", "", *_prose(type(action)), ""]
    for effect in action.effects:
        default = " (unless the step says otherwise)" if len(action.effects) > 1 and effect is action.effects[0] else ""
        yield f"* `{effect}`{default}: {EFFECTS[effect]}."
    if not action.is_local():
        yield f"* Retries: {_retry(action.default_retry)}; each try may take {action.default_timeout:g} s."
    if action.models is not None:
        yield f"* Works on {', '.join(f'`{name}`' for name in sorted(action.models))} only."
    if action.works_on_record():
        yield "* Needs the record: refused for a rule that listens to deletions."
    yield from ["", f"Parameters: {_lower(action.Params)}", "", *_parameters(action.Params)]


def _prose(kind: type) -> list[str]:
    """The docstrings that say what a kind does: its module's, and its own."""
    module = (inspect.getdoc(sys.modules[kind.__module__]) or "").partition("\n")[0]
    return [f"{module} {' '.join((inspect.getdoc(kind) or '').split())}".strip()]


def _retry(retry: Retry) -> str:
    jitter = ", each wait cut to a random part" if retry.jitter else ""
    return (
        f"{retry.max_attempts} attempts, {retry.base_delay:g} s after the first, {retry.factor:g} times as long after"
        f" each further one, at most {retry.max_delay:g} s{jitter}"
    )


def _parameters(model: type[BaseModel]) -> Iterator[str]:
    schema = marked_schema(model)
    required = set(schema.get("required", ()))
    rows = [
        [f"`{name}`" if name in required else f"`{name}` (optional)", _holds(part, schema), _about(name, part)]
        for name, part in schema.get("properties", {}).items()
    ]
    width = 3 if any(row[2] for row in rows) else 2
    yield from _table(["parameter", "holds", "is"][:width], [row[:width] for row in rows])
    for inner in _nested(model):
        yield from ["", f"Each `{inner.__name__}`: {_lower(inner)}", "", *_parameters(inner)]


def _lower(kind: type) -> str:
    """What a class is, as its docstring says it, in the middle of a sentence."""
    about = " ".join((inspect.getdoc(kind) or "").split())
    return about[:1].lower() + about[1:]


def _holds(part: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a parameter holds, in words."""
    if "x-marker" in part:
        word = {"read": "read", "change": "change", "": "any"}.get(part["x-word"], part["x-word"])
        is_text = part["x-marker"] == "template"
        others = [kind for kind in _alternatives(part, schema) if is_text and kind != JSON_TYPES["string"]]
        return " or ".join([MARKERS[part["x-marker"]].format(word=word), *others]) + _fallback(part)
    return _type(part, schema) + _fallback(part)


def _type(part: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in part:
        return f"`{part['$ref'].rpartition('/')[2]}`"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if "anyOf" in part:
        return " or ".join(_alternatives(part, schema))
    if part.get("type") == "array":
        return f"list of {_type(part.get('items', {}), schema)}"
    if part.get("type") == "object":
        return f"object of {_type(part.get('additionalProperties') or {}, schema)}"
    return JSON_TYPES.get(str(part.get("type", "")), "any value")


def _alternatives(part: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    kinds = (_type(one, schema) for one in part.get("anyOf", ()) if one.get("type") != "null")
    return list(dict.fromkeys(kinds))


def _fallback(part: dict[str, Any]) -> str:
    default = part.get("default")
    if isinstance(default, bool):
        default = str(default).lower()
    return f"; `{default}` by default" if default not in (None, "", [], {}) else ""


def _about(name: str, part: dict[str, Any]) -> str:
    """What a form says about a parameter; a title that pydantic made of the name says nothing more."""
    title = "" if part.get("title", "").lower() == name.replace("_", " ") else part.get("title", "")
    return ". ".join(filter(None, (title, part.get("description", ""))))


def _nested(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models of a model's lists and alternatives."""
    for info in model.model_fields.values():
        waiting: list[Any] = [info.annotation]
        while waiting:
            found = waiting.pop(0)
            if isinstance(found, type) and issubclass(found, BaseModel):
                yield found
            waiting += get_args(found)


def _effects(action: Action) -> str:
    return " or ".join(f"`{effect}`" for effect in action.effects)


def _shown(default: object) -> str:
    if isinstance(default, str):
        return default or "none"
    return ("on" if default else "off") if isinstance(default, bool) else f"{default:g}"


def _link(action: Action) -> str:
    anchor = f"{action.name()} {action.label}".lower().replace("@", "").replace(" ", "-")
    return f"[`{action.name()}`](#{anchor})"


def _field(item: Field) -> list[str]:
    kind = f"{item.type}: {', '.join(f'`{value}`' for value, _label in item.choices)}" if item.choices else item.type
    kind = f"number of {item.label}" if item.counts else kind
    return [f"`{item.path}`", kind, *("yes" if said else "" for said in (item.watch, item.read, item.change))]


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)]


def _page(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines) + "\n"
