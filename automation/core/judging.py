"""One leaf compiled into a closure over facts: true, false, or None for unknown."""

from collections.abc import Callable
from datetime import date
from typing import Any

from automation.core.changes import change_judge
from automation.core.comparisons import Test
from automation.core.facts import EVENT_PREFIX, Facts, read
from automation.core.moments import TIME_OPERATORS, Moment
from automation.core.operators import OPERATORS, Operator
from automation.core.quick import quick_judge
from automation.core.spec import Leaf
from automation.core.values import DECODERS, UNFIT, number

Judge = Callable[[Facts, Moment], bool | None]
Decode = Callable[[Any], Any]


def judge_of(leaf: Leaf) -> Judge:
    """The closure that judges a leaf; None where the field, the operator or the value isn't what it was saved as."""
    operator = OPERATORS.get(leaf.op)
    if operator is None:
        return _unknown
    bind, decode = operator.binder(leaf.type), decoder_of(leaf)
    try:
        if operator.reads == "change":
            return change_judge(leaf, bind, decode or _as_is)
        if leaf.value_of is not None:
            return _on_two_fields(leaf, operator, decode or _as_is)
        test = bind(leaf.value)
    except UNFIT:
        return _unknown
    if leaf.field.startswith(EVENT_PREFIX):
        return _on_event(leaf.field[len(EVENT_PREFIX) :], decode, test, operator.missing)
    if decode is not None:
        return _on_decoded(leaf.field, decode, test, operator.missing)
    quick = quick_judge(leaf.op, leaf.type, leaf.field, leaf.value)
    return _on_snapshot(leaf.field, test, operator.missing) if quick is None else quick


def decoder_of(leaf: Leaf) -> Decode | None:
    """How a raw value becomes what the operator compares; None when it is that already."""
    if leaf.op in ("is_empty", "is_not_empty"):
        return None
    if leaf.op in TIME_OPERATORS:
        return _time
    if leaf.field.startswith(EVENT_PREFIX):
        return _loose_text if leaf.type in ("text", "choice") else DECODERS[leaf.type]
    return _number if leaf.type == "number" else _date if leaf.type == "date" else None


def _unknown(facts: Facts, moment: Moment) -> bool | None:
    return None


def _on_snapshot(field: str, test: Test, missing: bool) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        try:
            raw = facts["snapshot"][field]
            return missing if raw is None else test(raw, moment)
        except KeyError:
            return None
        except UNFIT:
            return None

    return judge


def _on_decoded(field: str, decode: Decode, test: Test, missing: bool) -> Judge:
    return _on_snapshot(field, lambda raw, moment: test(decode(raw), moment), missing)


def _on_event(name: str, decode: Decode | None, test: Test, missing: bool) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        raw = (facts.get("data") or {}).get(name)
        if raw is None:
            return missing
        try:
            return test(raw if decode is None else decode(raw), moment)
        except UNFIT:
            return None

    return judge


def _on_two_fields(leaf: Leaf, operator: Operator, decode: Decode) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        known, raw = read(facts, leaf.field)
        other_known, other = read(facts, leaf.value_of or "")
        if not known or not other_known:
            return None
        if raw is None or other is None:
            return operator.missing
        try:
            wanted = decode(other)
            test = operator.binder(leaf.type)(frozenset(wanted) if isinstance(wanted, list) else wanted)
            return test(decode(raw), moment)
        except UNFIT:
            return None

    return judge


def _as_is(raw: Any) -> Any:
    return raw


def _number(raw: Any) -> Any:
    return raw if type(raw) is int else number(raw)


def _date(raw: Any) -> Any:
    return raw if isinstance(raw, date) else date.fromisoformat(raw)


def _time(raw: Any) -> Any:
    """A date, or an aware instant, from its text; a text of ten characters is a date."""
    if isinstance(raw, str):
        return date.fromisoformat(raw) if len(raw) == 10 else DECODERS["datetime"](raw)
    if not isinstance(raw, date):
        raise TypeError
    return raw


def _loose_text(raw: Any) -> str:
    """A text, or a number as one: an event's data has no types of its own."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return str(raw)
    return str(DECODERS["text"](raw))
