"""An action step checked against its action: parameters, templates, references, effect, retries."""

from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from pydantic import ValidationError

from automation.catalog.action import Action, CheckContext
from automation.catalog.automatable import Automatable, Field
from automation.catalog.fitting import Unfit, fit
from automation.catalog.params import (
    ActionParams,
    ConnectionRef,
    FieldRef,
    GroupRef,
    Place,
    Template,
    is_member,
    load,
    places,
)
from automation.core.calendars import Span
from automation.core.spec import Retry
from automation.definitions.names import Names
from automation.definitions.pointers import problems_of
from automation.definitions.schema import ActionStep, RetryPart
from automation.definitions.scope import ANY_KIND, GROUPS, MEMBERS, Scope

MAX_CONNECTIONS = 10  # of one step
REFERENCES = ("reference", "references")
UTC = ZoneInfo("UTC")
LONGEST_RETRYING = 7 * 86_400


def compile_action(step: ActionStep, pointer: str, scope: Scope, names: Names) -> dict[str, Any]:
    """The fields of the node that an action step becomes; problems are noted in the scope."""
    name = f"{step.action}@{step.version}"
    action = scope.catalog.actions.get(name)
    if action is None and scope.published:
        return _left_to_others(step, name)
    if action is None:
        scope.wrong(f"{pointer}/action", _("There is no action “%(name)s”.") % {"name": name[:60]}, "unknown_action")
        return {}
    _check_record(action, pointer, scope)
    effect = _effect(step, action, pointer, scope)
    arguments = _arguments(step, action, pointer, scope)
    if arguments is not None:
        _check_arguments(action, arguments, f"{pointer}/params", scope, names)
    return {
        "action": name,
        "local": action.is_local(),
        "params": step.params if arguments is None else arguments.model_dump(mode="json", by_alias=True),
        "arguments": arguments,
        "retry": _retry(step.retry, action.default_retry, pointer, scope),
        "timeout": float(action.default_timeout if step.timeout is None else Span.parse(step.timeout).seconds),
        "effect": effect,
        "if_it_fails": step.if_it_fails,
    }


def _left_to_others(step: ActionStep, name: str) -> dict[str, Any]:
    """The node of an action of a newer release: nobody here performs it, so it waits for somebody who knows it."""
    return {"action": name, "local": False, "params": step.params, "if_it_fails": step.if_it_fails}


def _check_record(action: Action, pointer: str, scope: Scope) -> None:
    if scope.trigger is None:
        return
    if action.models is not None and scope.trigger.model not in action.models:
        message = _("“%(label)s” doesn't work on this kind of record.") % {"label": action.label}
        scope.wrong(f"{pointer}/action", message, "wrong_model")
    if scope.has_no_record and action.works_on_record():
        message = _("“%(label)s” needs a record, and what this rule listens to is about none.")
        scope.wrong(f"{pointer}/action", message % {"label": action.label}, "needs_record")
    if "deleted" in scope.trigger.on and action.works_on_record():
        message = _("“%(label)s” needs the record, which is gone when it is deleted.") % {"label": action.label}
        scope.wrong(f"{pointer}/action", message, "needs_record")


def _effect(step: ActionStep, action: Action, pointer: str, scope: Scope) -> str:
    if step.effect is None:
        return str(action.effects[0])
    if step.effect not in action.effects:
        allowed = ", ".join(action.effects)
        message = _("“%(label)s” can't be %(effect)s, only: %(allowed)s.")
        names = {"label": action.label, "effect": step.effect, "allowed": allowed}
        scope.wrong(f"{pointer}/effect", message % names, "wrong_effect")
    return str(step.effect)


def _arguments(step: ActionStep, action: Action, pointer: str, scope: Scope) -> ActionParams | None:
    try:
        return load(action.Params, step.params)
    except ValidationError as error:
        scope.problems.extend(problems_of(error, f"{pointer}/params"))
        return None


def _check_arguments(action: Action, arguments: ActionParams, pointer: str, scope: Scope, names: Names) -> None:
    found = list(places(arguments, pointer))
    for place in found:
        _check_place(place, scope, names)
    used = {place.value for place in found if isinstance(place.marker, ConnectionRef)}
    if len(used) > MAX_CONNECTIONS and not scope.published:
        message = _("A step uses at most %(limit)s connections; this one uses %(count)s.")
        scope.wrong(pointer, message % {"limit": MAX_CONNECTIONS, "count": len(used)}, "too_many_connections")
    on = frozenset() if scope.trigger is None else scope.trigger.on
    context = CheckContext(
        model="" if scope.trigger is None else scope.trigger.model,
        automatable=scope.automatable,
        references=scope.references,
        models=scope.catalog.models,
        on=on,
    )
    for below, message in action.check(arguments, context):
        scope.wrong(pointer + below, message, "wrong_params")
    _check_written(action, arguments, pointer, scope)


def _check_written(action: Action, arguments: ActionParams, pointer: str, scope: Scope) -> None:
    """Records that a step writes into references by hand must be there, and be the tenant's own."""
    made = action.creates(arguments)
    written = [(scope.automatable, one) for one in action.writings(arguments)]
    written += [(scope.catalog.models.get(made[0]), one) for one in made[1]] if made is not None else []
    for entry, writing in written:
        field = entry.fields.get(writing.field) if entry is not None else None
        if entry is None or field is None or not writing.at or field.type not in REFERENCES:
            continue
        for value in writing.values or ():
            for number in _records(entry, field, value):
                if not scope.references.record(field.target, number):
                    _no_record(field, number, pointer + writing.at, scope)


def _records(entry: Automatable, field: Field, value: Any) -> list[int]:
    """The numbers that a value names; none where it doesn't fit the field, which has been said."""
    try:
        raw = fit(entry, field.path, value, zone=UTC)
    except Unfit:
        return []
    return raw if isinstance(raw, list) else [] if raw is None else [raw]


def _no_record(field: Field, number: int, pointer: str, scope: Scope) -> None:
    if field.target == MEMBERS:
        scope.wrong(pointer, _("There is no member %(member)s.") % {"member": number}, "missing_member")
        return
    names = {"field": field.label, "number": number}
    message = _("There is no record %(number)s that “%(field)s” could name.") % names
    scope.wrong(pointer, message, "missing_group" if field.target == GROUPS else "missing_record")


def _check_place(place: Place, scope: Scope, names: Names) -> None:
    marker, value = place.marker, place.value
    if isinstance(marker, Template):
        for message in names.check(value, marker.target):
            scope.wrong(place.pointer, message, "template_error")
    elif isinstance(marker, ConnectionRef):
        _check_connection(place, scope)
    elif isinstance(marker, FieldRef):
        _check_field(place, scope)
    elif isinstance(marker, GroupRef) and not scope.references.group(value):
        scope.wrong(place.pointer, _("There is no group “%(name)s”.") % {"name": value[:80]}, "missing_group")
    elif is_member(marker) and not scope.references.member(value):
        scope.wrong(place.pointer, _("There is no member %(member)s.") % {"member": value}, "missing_member")


def _check_field(place: Place, scope: Scope) -> None:
    field = scope.field_at(place.value, place.pointer)
    if field is not None and place.marker == "change" and not field.change:
        message = _("“%(field)s” is not a field that rules may change.") % {"field": place.value}
        scope.wrong(place.pointer, message, "unknown_field")


def _check_connection(place: Place, scope: Scope) -> None:
    kind, wanted = scope.references.connection(place.value), str(place.marker)
    names = {"name": place.value[:80], "kind": kind, "wanted": wanted}
    if kind is None:
        scope.wrong(place.pointer, _("There is no connection “%(name)s”.") % names, "missing_connection")
    elif wanted and kind not in (wanted, ANY_KIND):
        message = _("“%(name)s” is a connection of kind %(kind)s; %(wanted)s is needed here.") % names
        scope.wrong(place.pointer, message, "wrong_connection")


def _retry(part: RetryPart | None, default: Retry, pointer: str, scope: Scope) -> Retry:
    if part is None:
        return default
    retry = Retry(
        max_attempts=default.max_attempts if part.max_attempts is None else part.max_attempts,
        base_delay=_seconds(part.base_delay, default.base_delay),
        factor=default.factor if part.factor is None else part.factor,
        max_delay=_seconds(part.max_delay, default.max_delay),
        jitter=default.jitter if part.jitter is None else part.jitter,
    )
    waits = (min(retry.max_delay, retry.base_delay * retry.factor**n) for n in range(retry.max_attempts - 1))
    if sum(waits) > LONGEST_RETRYING:
        scope.wrong(f"{pointer}/retry", _("All retries together take at most seven days."), "retries_too_long")
    return retry


def _seconds(text: str | None, default: float) -> float:
    return default if text is None else float(Span.parse(text).seconds)
