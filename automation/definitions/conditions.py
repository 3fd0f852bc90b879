"""Conditions of a definition compiled: fields, operators and values checked, values converted."""

from typing import Any

from django.utils.translation import gettext as _

from automation.catalog.automatable import Field
from automation.core.facts import EVENT_PREFIX
from automation.core.operators import LATER_OPERATORS, OPERATORS, Operator
from automation.core.spec import Condition, Group, GroupMode, Leaf
from automation.definitions.pointers import pointer as pointer_to
from automation.definitions.schema import AllPart, AnyPart, ConditionPart, LeafPart, NonePart
from automation.definitions.scope import MEMBERS, Scope
from automation.definitions.values import BadValue, converted

_DEAD = Group("never", "any", ())


def compile_part(part: ConditionPart, pointer: str, scope: Scope) -> Condition:
    """The condition as frozen values. Problems are noted in the scope; what has one never matches."""
    if isinstance(part, LeafPart):
        return _leaf(part, pointer, scope) or _DEAD
    mode, items = _items(part)
    if not items:
        message = _("A group needs at least one condition; for “always” leave the whole condition empty.")
        scope.wrong(f"{pointer}/{mode}", message, "empty_group")
    compiled = (compile_part(item, f"{pointer}/{mode}/{index}", scope) for index, item in enumerate(items))
    return Group(part.id, mode, tuple(compiled))


def _items(part: AllPart | AnyPart | NonePart) -> tuple[GroupMode, list[ConditionPart]]:
    if isinstance(part, AllPart):
        return "all", part.all
    return ("any", part.any) if isinstance(part, AnyPart) else ("none", part.none)


def _leaf(part: LeafPart, pointer: str, scope: Scope) -> Leaf | None:
    field = scope.field_at(part.field, f"{pointer}/field")
    operator = _operator(part, field, pointer, scope)
    if field is None or operator is None:
        return None
    if part.value_of is not None:
        return _two_fields(part, field, operator, pointer, scope)
    if operator.wants == "none" and part.has_value and part.value is not None:
        scope.wrong(f"{pointer}/value", _("This comparison takes no value."), "wrong_value")
        return None
    if operator.wants != "none" and not part.has_value:
        scope.wrong(f"{pointer}/value", _("“value” is missing."), "missing")
        return None
    try:
        value, type_ = converted(operator, field, part.value)
    except BadValue as error:
        scope.wrong(f"{pointer}/value{pointer_to(*error.part)}", str(error), "wrong_value")
        return None
    if type_ not in operator.types:
        scope.wrong(f"{pointer}/value", _("This comparison doesn't work on such a value."), "wrong_value")
        return None
    _check_members(field, value, pointer, scope)
    return Leaf(part.id, part.field, part.op, value, type_)


def _operator(part: LeafPart, field: Field | None, pointer: str, scope: Scope) -> Operator | None:
    operator = OPERATORS.get(part.op)
    if operator is None:
        known = part.op in LATER_OPERATORS
        message = _("“%(word)s” is not available yet.") if known else _("There is no comparison “%(word)s”.")
        scope.wrong(f"{pointer}/op", message % {"word": part.op[:40]}, "not_available" if known else "unknown_operator")
        return None
    if field is None:
        return operator
    if field.type not in operator.types:
        names = {"op": part.op, "field": part.field, "type": field.type}
        message = _("“%(op)s” doesn't work on “%(field)s”, which is of type %(type)s.") % names
        scope.wrong(f"{pointer}/op", message, "wrong_operator")
        return None
    if operator.reads == "change" and not _changes(field, scope):
        names = {"op": part.op, "field": part.field}
        message = _("“%(op)s” can never hold: no event of this trigger carries a change of “%(field)s”.") % names
        scope.wrong(f"{pointer}/op", message, "never_changes")
        return None
    return operator


def _changes(field: Field, scope: Scope) -> bool:
    return field.watch and (scope.trigger is None or scope.trigger.kind == "record_changed")


def _two_fields(part: LeafPart, field: Field, operator: Operator, pointer: str, scope: Scope) -> Leaf | None:
    place = f"{pointer}/value_of"
    if part.has_value:
        scope.wrong(place, _("Either “value” or “value_of”, not both."), "wrong_value")
        return None
    if not operator.other_field or part.field.startswith(EVENT_PREFIX):
        scope.wrong(place, _("This comparison can't be made with another field."), "wrong_value")
        return None
    other = scope.field_at(part.value_of or "", place)
    if other is None:
        return None
    if other.type != field.type:
        names = {"field": part.field, "type": field.type, "other": other.path, "other_type": other.type}
        message = _("“%(field)s” (%(type)s) can't be compared with “%(other)s” (%(other_type)s).") % names
        scope.wrong(place, message, "wrong_value")
        return None
    return Leaf(part.id, part.field, part.op, None, field.type, part.value_of)


def _check_members(field: Field, value: Any, pointer: str, scope: Scope) -> None:
    """References to members must be members of the tenant."""
    if field.target != MEMBERS:
        return
    for member in value if isinstance(value, frozenset | tuple) else (value,):
        if member is not None and not scope.references.member(member):
            message = _("There is no member %(member)s.") % {"member": member}
            scope.wrong(f"{pointer}/value", message, "missing_member")
