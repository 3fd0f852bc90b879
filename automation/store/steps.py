"""Reads about steps that choose their way before anything is locked."""

from collections.abc import Sequence

from automation.store import statements


def actions(step_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """(kind, action) of each step; both never change once a step is written."""
    found = statements.rows(
        "SELECT id, kind, action FROM automation_stepexecution WHERE id = ANY(%s)", [list(step_ids)]
    )
    return {row[0]: (row[1], row[2]) for row in found}
