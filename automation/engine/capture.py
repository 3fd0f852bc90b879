"""Writes what changed as events, in the transaction of the change itself: one for each record and cause."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from automation import failpoints
from automation.catalog.automatable import Automatable
from automation.engine.arming import arm_after_commit
from automation.engine.changes import Change, Reading, compare, cut_texts, facts_of, from_facts, merge
from automation.engine.reading import reader_of
from automation.engine.sources import Origin, current_origin
from automation.store import statements

ROWS_AT_ONCE = 1000  # events in one statement

_COLUMNS = """
INSERT INTO automation_event (tenant_id, change, record, facts, kind, name, body_sha256, model, actor, actor_id, source,
                              batch, root_event_id, parent_event_id, cause_rule_id, cause_run_id, cause_step_id, depth,
                              path)
"""
_TYPES = ("varchar", "varchar", "bigint", "varchar", "varchar", *["bigint"] * 5, "smallint", "jsonb")
_TOLD = "'record_changed', '', '', " + ", ".join(f"%s::{type_}" for type_ in _TYPES)
_INSERT_ONE = f"{_COLUMNS} VALUES (%s, %s, %s, %s, {_TOLD}) RETURNING record, id"
_INSERT_MANY = f"""{_COLUMNS}
SELECT u.tenant_id, u.change, u.record, u.facts, {_TOLD}
  FROM unnest(%s::bigint[], %s::varchar[], %s::bigint[], %s::jsonb[])
       WITH ORDINALITY AS u (tenant_id, change, record, facts, place)
 ORDER BY u.place
RETURNING record, id
"""  # noqa: S608 the parts are the constants above
_STORED = "SELECT id, facts FROM automation_event WHERE id = ANY(%s::bigint[]) AND matched_at IS NULL"
_REPLACE = """
UPDATE automation_event e SET change = u.change, facts = u.facts
  FROM unnest(%s::bigint[], %s::varchar[], %s::jsonb[]) AS u (id, change, facts) WHERE e.id = u.id
"""
_FORGET = "DELETE FROM automation_event WHERE id = ANY(%s::bigint[])"


@dataclass(slots=True)
class Captured:
    """What this transaction has captured: its events by record and origin, and whose outboxes it filled.

    Django keeps it among the transaction's commit hooks, and so forgets it exactly when it should: after the commit,
    after a rollback, and when the savepoint is rolled back in which the first event was written.
    """

    events: dict[tuple[object, ...], int] = field(default_factory=dict)
    tenants: set[int] = field(default_factory=set)

    def arm(self) -> None:
        """After the commit: see to it that somebody matches. What a crash here leaves undone is healed by a sweep."""
        failpoints.hit("capture.committed")
        for tenant_id in sorted(self.tenants):
            arm_after_commit(tenant_id)


def captured() -> Captured:
    """What the transaction that is open now has captured."""
    for hook in connection.run_on_commit:
        owner = getattr(hook[1], "__self__", None)
        if isinstance(owner, Captured):
            return owner
    fresh = Captured()
    transaction.on_commit(fresh.arm, robust=True)
    return fresh


def begin_anew() -> None:
    """Later changes merge with none so far: for several transactions of the engine inside one of its caller's."""
    captured().events.clear()


def record_changes(entry: Automatable, changes: Iterable[Change], origin: Origin | None = None) -> list[int]:
    """Write the events of some records of one model, or merge them into those that this transaction has written.

    Each record at most once. A constant number of statements for each thousand. Answers the events' ids; a change that
    took an earlier one back leaves none.
    """
    origin = origin or current_origin()
    ids: list[int] = []
    batch = list(changes)
    for start in range(0, len(batch), ROWS_AT_ONCE):
        ids += _record(entry, batch[start : start + ROWS_AT_ONCE], origin)
    return ids


def record_difference(entry: Automatable, before: Mapping[int, Reading], after: Mapping[int, Reading]) -> list[int]:
    """Write the events of what differs between two readings of some records, in the order of their ids."""
    found = (compare(entry, pk, before.get(pk), after.get(pk)) for pk in sorted({*before, *after}))
    return record_changes(entry, [change for change in found if change is not None])


def read_records(entry: Automatable, ids: Iterable[int], *, lock: bool) -> dict[int, dict[str, Any]]:
    """The records' present raw values by path; those that are gone are absent.

    With `lock` their rows stay locked until the transaction ends (FOR NO KEY UPDATE, in the order of their ids).
    """
    reader, wanted = reader_of(entry), list(ids)
    if lock:
        own = reader.lock(wanted)
        if reader.is_flat or not own:
            return {pk: reading.values for pk, reading in own.items()}
        wanted = list(own)
    return {pk: reading.values for pk, reading in reader.read(wanted).items()}


def snapshot_of(entry: Automatable, record_id: int) -> tuple[dict[str, Any], list[str]]:
    """A record's raw values as an event keeps them, and the paths of the texts that were cut. LookupError if gone."""
    reading = reader_of(entry).read([record_id]).get(record_id)
    if reading is None:
        raise LookupError(f"There is no {entry.name} {record_id}.")
    values, cut = cut_texts(entry.fields, reading.values)
    return values, sorted(cut)


def _record(entry: Automatable, changes: Sequence[Change], origin: Origin) -> list[int]:
    if not changes:
        return []
    known = captured()
    known.tenants.update(change.tenant_id for change in changes)
    keys = {change.record: (entry.name, change.record, origin.merges_with) for change in changes}
    earlier = {
        change.record: known.events[keys[change.record]] for change in changes if keys[change.record] in known.events
    }
    failpoints.hit("capture.row_written")
    done: dict[int, int | None] = _merge(entry, changes, earlier, origin) if earlier else {}
    fresh = [change for change in changes if change.record not in done]
    done |= _insert(entry, fresh, origin) if fresh else {}
    for record, event_id in done.items():
        if event_id is None:
            known.events.pop(keys[record], None)
        else:
            known.events[keys[record]] = event_id
    return [event_id for event_id in done.values() if event_id is not None]


def _insert(entry: Automatable, changes: Sequence[Change], origin: Origin) -> dict[int, int]:
    cause = origin.cause
    told: list[Any] = [
        entry.name,
        origin.actor[:200],
        origin.actor_id,
        origin.source,
        origin.batch,
        cause.root_event_id,
    ]
    told += [cause.parent_event_id, cause.rule_id, cause.run_id, cause.step_id, cause.depth, json.dumps(cause.path)]
    rows = [
        (
            change.tenant_id,
            change.change,
            change.record,
            json.dumps(facts_of(change, origin.source, **origin.facts)),
        )
        for change in changes
    ]
    if len(rows) == 1:
        return dict(statements.rows(_INSERT_ONE, [*rows[0], *told]))
    return dict(statements.rows(_INSERT_MANY, [*told, *statements.columns(rows)]))


def _merge(
    entry: Automatable, changes: Sequence[Change], earlier: Mapping[int, int], origin: Origin
) -> dict[int, int | None]:
    """Merge into events of this transaction; by record, the event's id, or None where nothing is left of it.

    What an event says now is read from its row, not remembered: a savepoint may have taken a part of it back. A record
    whose event is gone altogether isn't in the answer.
    """
    stored = {event_id: json.loads(facts) for event_id, facts in statements.rows(_STORED, [list(earlier.values())])}
    done: dict[int, int | None] = {}
    left: list[tuple[int, str, str]] = []
    gone: list[int] = []
    for change in changes:
        event_id = earlier.get(change.record)
        if event_id is None or event_id not in stored:
            continue
        merged = merge(entry, from_facts(change.record, change.tenant_id, stored[event_id]), change)
        done[change.record] = None if merged is None else event_id
        if merged is None:
            gone.append(event_id)
        else:
            left.append((event_id, merged.change, json.dumps(facts_of(merged, origin.source, **origin.facts))))
    if left:
        statements.count(_REPLACE, statements.columns(left))
    if gone:
        statements.count(_FORGET, [gone])
    return done
