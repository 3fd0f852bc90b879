"""Reads the outbox and marks what was matched."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from automation.core.causes import Cause
from automation.store import statements


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as the engine works on it, without a model instance."""

    id: int
    tenant_id: int
    kind: str
    change: str
    name: str
    model: str
    record: int | None
    facts: dict[str, Any]
    actor: str
    source: str
    batch: str
    cause: Cause
    created_at: datetime

    @property
    def root_id(self) -> int:
        """The event that the chain began with; a root is its own."""
        return self.id if self.cause.root_event_id is None else self.cause.root_event_id

    @property
    def record_key(self) -> str:
        """The record as loop guard and keys name it; the event itself where it has none."""
        return f"{self.model}:{self.record}" if self.record is not None else f"event:{self.id}"

    def outcomes(self) -> list[str]:
        """The words by which a trigger that is choosy (`on`) tells such events apart; none of most kinds."""
        return list(self.facts.get("outcomes") or ())

    def changed(self) -> list[str]:
        """The fields that this event changed, of a created record those that it was created with."""
        return list(self.facts.get("after") or ())


class NewEvent(NamedTuple):
    """An event that the engine itself raises: no change of a record made it."""

    tenant_id: int
    kind: str
    model: str
    record: int | None
    facts: Mapping[str, Any]
    actor: str
    batch: str
    cause: Cause


COLUMNS = """
  e.id, e.tenant_id, e.kind, e.change, e.name, e.model, e.record, e.facts, e.actor, e.source, e.batch,
  e.root_event_id, e.parent_event_id, e.cause_rule_id, e.cause_run_id, e.cause_step_id, e.depth, e.path, e.created_at
"""
UNMATCHED = f"""
SELECT {COLUMNS} FROM automation_event e WHERE e.tenant_id = %s AND e.matched_at IS NULL ORDER BY e.id LIMIT %s
"""  # noqa: S608 the columns above
OF_ROOT = f"""
SELECT {COLUMNS} FROM automation_event e
 WHERE e.id >= %s AND e.tenant_id = %s AND (e.id = %s OR e.root_event_id = %s) AND (e.matched_at IS NULL OR NOT %s)
 ORDER BY e.id
"""  # noqa: S608 the columns above


def row(values: Sequence[Any]) -> EventRow:
    """An event from the columns of `COLUMNS`, in their order."""
    id_, tenant_id, kind, change, name, model, record, facts, actor, source, batch = values[:11]
    root_event_id, parent_event_id, rule_id, run_id, step_id, depth, path, created_at = values[11:19]
    return EventRow(
        id=id_,
        tenant_id=tenant_id,
        kind=kind,
        change=change,
        name=name,
        model=model,
        record=record,
        facts=json.loads(facts),
        actor=actor,
        source=source,
        batch=batch,
        cause=Cause(
            root_event_id=root_event_id,
            parent_event_id=parent_event_id,
            rule_id=rule_id,
            run_id=run_id,
            step_id=step_id,
            depth=depth,
            path=tuple((rule, key) for rule, key in json.loads(path)),
        ),
        created_at=created_at,
    )


def unmatched(tenant_id: int, limit: int) -> list[EventRow]:
    """The tenant's oldest events that no matcher has seen, in id order: by state, never by a cursor."""
    return [row(values) for values in statements.rows(UNMATCHED, [tenant_id, limit])]


def of_root(tenant_id: int, root: int, *, unmatched: bool) -> list[EventRow]:
    """An event that was just written and all that came of it, or those of them that nobody has matched yet."""
    return [row(values) for values in statements.rows(OF_ROOT, [root, tenant_id, root, root, unmatched])]


def mail_of(event_id: int) -> dict[str, Any]:
    """What an event says of the mail that it came of; empty where it came of none."""
    found = statements.rows("SELECT facts -> 'mail' FROM automation_event WHERE id = %s", [event_id])
    value = found[0][0] if found else None
    mail: dict[str, Any] = json.loads(value) if isinstance(value, str) else value or {}
    return mail


def mark_matched(event_ids: Sequence[int]) -> int:
    """Marks events as judged; answers how many weren't yet."""
    if not event_ids:
        return 0
    return statements.count(
        "UPDATE automation_event SET matched_at = clock_timestamp() WHERE id = ANY(%s) AND matched_at IS NULL",
        [list(event_ids)],
    )


def flags(tenant_ids: Sequence[int]) -> dict[int, tuple[bool, bool, int]]:
    """(paused, hold_new, rules_version) of each tenant, as committed at this moment."""
    found = statements.rows(
        "SELECT tenant_id, paused, hold_new, rules_version FROM automation_lane WHERE tenant_id = ANY(%s)",
        [list(tenant_ids)],
    )
    return {values[0]: (values[1], values[2], values[3]) for values in found}


INSERT = """
INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch, body_sha256,
                              root_event_id, parent_event_id, cause_rule_id, cause_run_id, cause_step_id, depth, path)
SELECT u.tenant_id, u.kind, '', '', u.model, u.record, u.facts::jsonb, u.actor, 'automation', u.batch, '', u.root,
       u.parent, u.rule, u.run, u.step, u.depth, u.path::jsonb
  FROM unnest(%s::bigint[], %s::varchar[], %s::varchar[], %s::bigint[], %s::text[], %s::varchar[], %s::varchar[],
              %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::text[])
       AS u (tenant_id, kind, model, record, facts, actor, batch, root, parent, rule, run, step, depth, path)
"""


def insert(new: Sequence[NewEvent]) -> None:
    """Writes events in the caller's transaction; who commits it sees to it that they get matched."""
    if not new:
        return
    rows = [
        (
            *(one.tenant_id, one.kind, one.model, one.record, json.dumps(one.facts, default=str), one.actor[:200]),
            *(one.batch, one.cause.root_event_id, one.cause.parent_event_id, one.cause.rule_id, one.cause.run_id),
            *(one.cause.step_id, one.cause.depth, json.dumps(one.cause.path)),
        )
        for one in new
    ]
    statements.count(INSERT, statements.columns(rows))
