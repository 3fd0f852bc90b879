"""What changed between two readings of a record, and how several changes become one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from automation.catalog.automatable import Automatable, Field
from automation.core.facts import cut_text, same

Values = dict[str, Any]
_EMPTY: tuple[Any, ...] = (None, "", [])


@dataclass(frozen=True, slots=True)
class Reading:
    """A record at a moment: its tenant, and its raw values by path."""

    tenant_id: int
    values: Values


@dataclass(slots=True)
class Change:
    """One change of one record: `change` is created, updated or deleted; raw values before and after, by field."""

    record: int
    tenant_id: int
    change: str
    before: Values
    after: Values
    snapshot: Values
    cut: set[str] = field(default_factory=set)


def compare(entry: Automatable, record: int, before: Reading | None, after: Reading | None) -> Change | None:
    """What happened to a record between two readings; None when nothing did.

    None for a reading means that there was no such record. Only paths that `before` has are compared.
    """
    watched = entry.watched
    if after is None:
        return None if before is None else _deleted(watched, record, before)
    if before is None:
        return _created(watched, record, after)
    moved = [path for path in watched if path in before.values and _moved(watched[path], before.values, after.values)]
    if not moved:
        return None
    was, now = ({path: reading.values[path] for path in moved} for reading in (before, after))
    return _cut(watched, Change(record, after.tenant_id, "updated", was, now, after.values))


def _created(watched: Mapping[str, Field], record: int, after: Reading) -> Change:
    values = {path: after.values[path] for path in watched if _is_there(watched[path], after.values[path])}
    return _cut(watched, Change(record, after.tenant_id, "created", {}, values, after.values))


def _deleted(watched: Mapping[str, Field], record: int, before: Reading) -> Change:
    last = {path: before.values[path] for path in watched if path in before.values}
    return _cut(watched, Change(record, before.tenant_id, "deleted", last, {}, before.values))


def merge(entry: Automatable, first: Change, then: Change) -> Change | None:
    """The two as one: first before, last after. None when nothing is left of them."""
    kinds = first.change, then.change
    if kinds == ("created", "deleted"):
        return None
    cut = then.cut | (first.cut & set(first.before))
    if kinds[1] == "deleted":
        return Change(then.record, then.tenant_id, "deleted", then.before | first.before, {}, then.snapshot, cut)
    watched = entry.watched
    after = first.after | then.after
    if kinds[0] == "created":
        there = {path: raw for path, raw in after.items() if path not in watched or _is_there(watched[path], raw)}
        return Change(then.record, then.tenant_id, "created", {}, there, then.snapshot, cut)
    # Deleted and made anew under its old id is an update, too.
    before = then.before | first.before
    left = [path for path in before if path in cut or not _back(watched.get(path), before[path], after.get(path))]
    if not left:
        return None
    was, now = {path: before[path] for path in left}, {path: after.get(path) for path in left}
    return Change(then.record, then.tenant_id, "updated", was, now, then.snapshot, cut)


def facts_of(change: Change, source: str, **told: Any) -> dict[str, Any]:
    """The facts of the event that a change becomes, as core.facts describes them, with what its origin tells."""
    return {
        "change": change.change,
        "before": change.before,
        "after": change.after,
        "snapshot": change.snapshot,
        "data": {},
        "cut": sorted(change.cut),
        "source": source,
        **told,
    }


def from_facts(record: int, tenant_id: int, facts: Mapping[str, Any]) -> Change:
    """The change that an event recorded."""
    return Change(
        record, tenant_id, facts["change"], facts["before"], facts["after"], facts["snapshot"], set(facts["cut"])
    )


def cut_texts(fields: Mapping[str, Field], values: Values) -> tuple[Values, set[str]]:
    """The values with long texts cut to what an event keeps, and the paths of those."""
    cut: set[str] = set()
    short = values
    for path, raw in values.items():
        if isinstance(raw, str) and _is_text(fields.get(path)):
            text, was_cut = cut_text(raw)
            if was_cut:
                short = dict(values) if short is values else short
                short[path] = text
                cut.add(path)
    return short, cut


def _cut(watched: Mapping[str, Field], change: Change) -> Change:
    """Texts are compared whole and kept cut."""
    change.before, one = cut_texts(watched, change.before)
    change.after, two = cut_texts(watched, change.after)
    change.snapshot, three = cut_texts(watched, change.snapshot)
    change.cut = one | two | three
    return change


def _is_text(known: Field | None) -> bool:
    return known is None or known.type == "text"


def _is_there(known: Field, raw: Any) -> bool:
    """Whether a new record came with a value: not with an empty one, nor with a count of nothing."""
    return raw not in _EMPTY and not (known.counts and raw == 0)


def _moved(known: Field, before: Values, after: Values) -> bool:
    one, other = before[known.path], after[known.path]
    return one != other and not same(one, other, known.type)


def _back(known: Field | None, one: Any, other: Any) -> bool:
    return one == other or (known is not None and same(one, other, known.type))
