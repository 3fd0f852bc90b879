"""Writes the switch, the live version, the order and the deletion of rules, each guarded by what was read."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from automation.store import shelves

RESTORABLE_DAYS = 30


def set_switch(rule_id: int, *, on: bool, off_mode: str, published_id: int | None = None) -> bool:
    """Switches a rule on or off; False when it stands so already or is deleted. What it holds stays, or goes on.

    With the id of a version, False also when another one is live by now.
    """
    return _followed(
        'UPDATE automation_rule SET "on" = %s, off_mode = %s WHERE id = %s AND deleted_at IS NULL'
        ' AND ("on" <> %s OR off_mode <> %s) AND (%s::bigint IS NULL OR published_id = %s)',
        [on, off_mode, rule_id, on, off_mode, published_id, published_id],
    )


def set_published(rule_id: int, version_id: int) -> bool:
    """Makes a version the live one; False when the rule is deleted."""
    return _followed(
        "UPDATE automation_rule SET published_id = %s WHERE id = %s AND deleted_at IS NULL", [version_id, rule_id]
    )


def set_deleted(rule_id: int) -> bool:
    """Hides a rule and switches it off; False when that was done before. Nothing of it is held any more."""
    return _followed(
        "UPDATE automation_rule SET deleted_at = automation_now(), \"on\" = false, off_mode = 'hold'"
        " WHERE id = %s AND deleted_at IS NULL",
        [rule_id],
    )


def close_letters(tenant_id: int, rule_id: int, *, actor: str) -> int:
    """Closes the open dead letters of a deleted rule; answers how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_deadletter d SET resolution = 'rule_deleted', actor = %s, resolved_at = automation_now()"
            " FROM automation_run r, automation_rule u WHERE d.tenant_id = %s AND d.resolved_at IS NULL"
            " AND r.id = d.run_id AND r.rule_id = %s"
            " AND u.id = r.rule_id AND u.deleted_at IS NOT NULL",
            [actor, tenant_id, rule_id],
        )
        return int(cursor.rowcount)


def set_restored(rule_id: int) -> bool:
    """Brings a deleted rule back, switched off; False when it isn't deleted or was so more than 30 days ago."""
    return _followed(
        "UPDATE automation_rule SET deleted_at = NULL WHERE id = %s"
        " AND deleted_at > automation_now() - make_interval(days => %s)",
        [rule_id, RESTORABLE_DAYS],
    )


def set_taking_up(rule_id: int, state: Mapping[str, Any] | None) -> None:
    """Writes how far a locked rule has come in running for records that were there before; None ends it."""
    _changed(
        "UPDATE automation_rule SET taking_up = %s::jsonb WHERE id = %s",
        [None if state is None else json.dumps(dict(state)), rule_id],
    )


def taking_up(limit: int) -> list[tuple[int, int]]:
    """(rule, tenant) of rules of all tenants whose next record that was there before is due, the longest due first.

    Those under a pause are left out: however many they are, they keep nobody's turn.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, u.tenant_id FROM automation_rule u"
            " JOIN automation_lane l ON l.tenant_id = u.tenant_id AND NOT l.paused AND NOT l.hold_new"
            " WHERE u.taking_up IS NOT NULL AND (u.taking_up ->> 'next_at')::timestamptz <= (SELECT automation_now())"
            " AND NOT EXISTS (SELECT 1 FROM automation_pause p WHERE p.scope = 'rule'"
            " AND p.tenant_id = u.tenant_id AND p.subject_id = u.id AND p.ended_at IS NULL)"
            " ORDER BY (u.taking_up ->> 'next_at')::timestamptz, u.id LIMIT %s",
            [limit],
        )
        return [(row[0], row[1]) for row in cursor.fetchall()]


def set_positions(positions: Mapping[int, int]) -> None:
    """Numbers rules anew: {rule id: position}."""
    if positions:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE automation_rule r SET position = u.position"
                " FROM unnest(%s::bigint[], %s::int[]) AS u (id, position) WHERE r.id = u.id",
                [list(positions), list(positions.values())],
            )


def _followed(sql: str, params: Sequence[Any]) -> bool:
    """Changes one rule, and lets its shelf follow."""
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} RETURNING tenant_id, id", params)
        row = cursor.fetchone()
    if row is not None:
        shelves.follow("rule", tenant_id=row[0], subject_id=row[1])
    return row is not None


def _changed(sql: str, params: Sequence[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount) == 1


def run_times(tenant_id: int, rule_ids: Sequence[int], *, limit: int) -> dict[int, list[datetime]]:
    """When each rule last ran, suppressed runs and replays apart, newest first: at most `limit` times a rule."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, r.created_at FROM unnest(%s::bigint[]) AS u (id) CROSS JOIN LATERAL ("
            " SELECT x.id, x.created_at FROM automation_run x WHERE x.tenant_id = %s AND x.rule_id = u.id"
            " AND x.state <> 'suppressed' AND x.forked_from_run_id IS NULL AND x.origin = 'event'"
            " ORDER BY x.id DESC LIMIT %s) r ORDER BY u.id, r.id DESC",
            [list(rule_ids), tenant_id, limit],
        )
        found: dict[int, list[datetime]] = {}
        for rule_id, created_at in cursor.fetchall():
            found.setdefault(rule_id, []).append(created_at)
        return found
