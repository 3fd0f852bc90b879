"""Finds what is stored about a person, and writes it back without: by pages of keys, each write one transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from automation.store import statements
from automation.store.waves import dumps

OWN, LINKED, MENTIONED = "own", "linked", "mentioned"

EVENTS = """
SELECT e.id, e.model, CASE WHEN e.model = %s AND e.record = %s THEN 'own'
       WHEN EXISTS (SELECT 1 FROM unnest(%s::varchar[], %s::varchar[]) l (model, path) WHERE l.model = e.model
                     AND (e.facts -> 'snapshot' -> l.path @> %s::jsonb OR e.facts -> 'before' -> l.path @> %s::jsonb
                          OR e.facts -> 'after' -> l.path @> %s::jsonb)) THEN 'linked'
       WHEN e.facts::text ILIKE ANY(%s) THEN 'mentioned' END, e.facts
  FROM automation_event e WHERE e.id = ANY(%s) ORDER BY e.id
"""
RUNS_OF = """
SELECT r.id FROM automation_run r WHERE r.event_id = ANY(%s) AND r.origin = 'event' AND r.forked_from_run_id IS NULL
UNION SELECT f.id FROM automation_run f WHERE f.event_id = ANY(%s) AND f.forked_from_run_id IS NOT NULL
"""
DEFINITIONS = """
SELECT v.definition FROM automation_ruleversion v WHERE v.id IN (
  SELECT r.rule_version_id FROM automation_run r WHERE r.id = ANY(%s))
"""
STEPS = """
SELECT s.id, s.kind, s.input, s.output, s.error FROM automation_stepexecution s WHERE s.run_id = ANY(%s)
   AND (s.input IS NOT NULL OR s.output IS NOT NULL OR s.error <> '')
   AND (%s OR s.input::text ILIKE ANY(%s) OR s.output::text ILIKE ANY(%s) OR s.error ILIKE ANY(%s)) ORDER BY s.id
"""
ATTEMPTS = """
SELECT a.id, a.request, a.answer FROM automation_attempt a JOIN automation_stepexecution s ON s.id = a.step_id
 WHERE s.run_id = ANY(%s) AND (a.request <> '' OR a.answer <> '')
   AND (%s OR a.request ILIKE ANY(%s) OR a.answer ILIKE ANY(%s)) ORDER BY a.id
"""
LETTERS = """
SELECT d.id, d.snapshot, d.error FROM automation_deadletter d
 WHERE (d.run_id = ANY(%s) OR (d.run_id IS NULL AND d.event_id = ANY(%s)))
   AND (%s OR d.snapshot::text ILIKE ANY(%s) OR d.error ILIKE ANY(%s)) ORDER BY d.id
"""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event that has to do with the person: it is about them, about a record of theirs, or mentions them."""

    id: int
    model: str
    how: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of some runs, as the database has them: (id, kind, input, output, error), and so on."""

    steps: list[tuple[Any, ...]]
    attempts: list[tuple[Any, ...]]
    letters: list[tuple[Any, ...]]

    def parts(self) -> tuple[list[tuple[Any, ...]], ...]:
        """The three lists."""
        return self.steps, self.attempts, self.letters


def likes(words: Sequence[str]) -> list[str]:
    """The words as patterns that a text is asked for."""
    return ["%" + _escaped(word) + "%" for word in words]


def events(
    event_ids: Sequence[int],
    *,
    model: str,
    record: int,
    links: Sequence[tuple[str, str]],
    words: Sequence[str],
    lock: bool = False,
) -> list[StoredEvent]:
    """Those of the events that have to do with the person; `links` are (model, path) of references to them.

    With `lock` all of the events are locked, so that nobody removes their facts before they are written back.
    """
    models, paths = statements.columns(links, 2)
    key = str(record)
    sql = f"{EVENTS} FOR NO KEY UPDATE OF e" if lock else EVENTS
    rows = statements.rows(sql, [model, record, models, paths, key, key, key, likes(words), list(event_ids)])
    return [StoredEvent(row[0], row[1], row[2], _loaded(row[3])) for row in rows if row[2] is not None]


def runs_of(event_ids: Sequence[int]) -> list[int]:
    """The runs of these events."""
    return sorted(row[0] for row in statements.rows(RUNS_OF, [list(event_ids), list(event_ids)]))


def definitions_of(run_ids: Sequence[int]) -> list[Any]:
    """The definitions that these runs follow, each once."""
    return [_loaded(row[0]) for row in statements.rows(DEFINITIONS, [list(run_ids)])]


def run_ids(tenant_id: int, state: str, *, after: int, limit: int) -> list[int]:
    """The tenant's next runs in one state, in the order of their ids."""
    found = statements.rows(
        "SELECT r.id FROM automation_run r WHERE r.tenant_id = %s AND r.state = %s AND r.id > %s"
        " ORDER BY r.id LIMIT %s",
        [tenant_id, state, after, limit],
    )
    return [row[0] for row in found]


def lock_runs(ids: Sequence[int]) -> int:
    """Locks runs in the order of their ids, before any of their rows is written; answers how many haven't ended."""
    found = statements.rows(
        "SELECT r.ended_at IS NULL FROM automation_run r WHERE r.id = ANY(%s) ORDER BY r.id FOR NO KEY UPDATE",
        [list(ids)],
    )
    return sum(row[0] for row in found)


def rows_of(ids: Sequence[int], *, event_ids: Sequence[int] = (), words: Sequence[str], all_of_it: bool) -> Found:
    """What is stored about runs, and about dead letters of events without one: all of it, or what has the words."""
    given, patterns = [list(ids)], likes(words)
    return Found(
        steps=[
            (row[0], row[1], _loaded(row[2]), _loaded(row[3]), row[4])
            for row in statements.rows(STEPS, [*given, all_of_it, patterns, patterns, patterns])
        ],
        attempts=statements.rows(ATTEMPTS, [*given, all_of_it, patterns, patterns]),
        letters=[
            (row[0], _loaded(row[1]), row[2])
            for row in statements.rows(LETTERS, [*given, list(event_ids), all_of_it, patterns, patterns])
        ],
    )


def write(found: Found) -> None:
    """Writes rows of runs back."""
    if found.steps:
        statements.count(
            "UPDATE automation_stepexecution s SET input = u.input::jsonb, output = u.output::jsonb, error = u.error"
            " FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS u (id, input, output, error)"
            " WHERE s.id = u.id",
            statements.columns([(row[0], dumps(row[2]), dumps(row[3]), row[4]) for row in found.steps]),
        )
    if found.attempts:
        statements.count(
            "UPDATE automation_attempt a SET request = u.request, answer = u.answer"
            " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS u (id, request, answer) WHERE a.id = u.id",
            statements.columns(found.attempts),
        )
    if found.letters:
        statements.count(
            "UPDATE automation_deadletter d SET snapshot = u.snapshot::jsonb, error = u.error"
            " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS u (id, snapshot, error) WHERE d.id = u.id",
            statements.columns([(row[0], dumps(row[1]), row[2]) for row in found.letters]),
        )


def write_events(changed: Sequence[tuple[int, dict[str, Any], bool]]) -> None:
    """Writes the facts of events back; True where they are gone altogether."""
    statements.count(
        "UPDATE automation_event e SET facts = u.facts::jsonb, details_removed_at = CASE WHEN u.gone THEN"
        " COALESCE(e.details_removed_at, automation_now()) ELSE e.details_removed_at END"
        " FROM unnest(%s::bigint[], %s::text[], %s::bool[]) AS u (id, facts, gone) WHERE e.id = u.id",
        statements.columns([(event_id, dumps(facts), gone) for event_id, facts, gone in changed]),
    )


def made_by(event_ids: Sequence[int], user_id: int) -> list[tuple[Any, ...]]:
    """Those of the events that a user made, and that still say by name who it was."""
    return statements.rows(
        "SELECT e.id FROM automation_event e WHERE e.id = ANY(%s) AND e.actor_id = %s AND e.actor <> ''",
        [list(event_ids), user_id],
    )


def forget_maker(event_ids: Sequence[int], user_id: int) -> None:
    """Empties the name of who made these events, where it was that user; the user's number stays."""
    statements.count(
        "UPDATE automation_event SET actor = '' WHERE id = ANY(%s) AND actor_id = %s AND actor <> ''",
        [list(event_ids), user_id],
    )


def rules_with(tenant_id: int, words: Sequence[str]) -> list[tuple[int, str]]:
    """The tenant's rules whose name, draft, or a version of theirs with its remark has the words: (id, name)."""
    patterns = likes(words)
    found = statements.rows(
        "SELECT u.id, u.name FROM automation_rule u WHERE u.tenant_id = %s AND (u.name ILIKE ANY(%s) OR EXISTS"
        " (SELECT 1 FROM automation_ruledraft d WHERE d.rule_id = u.id AND d.definition::text ILIKE ANY(%s))"
        " OR EXISTS (SELECT 1 FROM automation_ruleversion v WHERE v.rule_id = u.id AND v.tenant_id = u.tenant_id"
        " AND (v.note ILIKE ANY(%s) OR v.definition::text ILIKE ANY(%s)))) ORDER BY u.id",
        [tenant_id, patterns, patterns, patterns, patterns],
    )
    return [(row[0], row[1]) for row in found]


def _escaped(word: str) -> str:
    for sign in ("\\", "%", "_"):
        word = word.replace(sign, f"\\{sign}")
    return word


def _loaded(value: Any) -> Any:
    return None if value is None else json.loads(value)
