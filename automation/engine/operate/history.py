"""Follows the steps that a run has settled through a version of its rule, as the planner does."""

from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _

from automation.core.decisions import Settled
from automation.core.planner import HistoryMismatch, following
from automation.core.spec import Node, RuleSpec
from automation.engine.operate import Refused
from automation.models import Run, StepExecution

SETTLED = ("succeeded", "failed", "skipped")


def settled_rows(run: Run) -> dict[str, StepExecution]:
    """A run's steps by path."""
    return {row.path: row for row in StepExecution.objects.filter(run=run)}


def walk(spec: RuleSpec, rows: Mapping[str, StepExecution]) -> Iterator[tuple[int | None, StepExecution | None]]:
    """The places that the run passed, in order: (index of a node, its row); the last has no settled row, or is None.

    `Refused` where the run took a way out of a branch that the version doesn't have.
    """
    index = spec.first
    while index is not None:
        node = spec.nodes[index]
        row = rows.get(node.path)
        if row is None or row.kind != node.kind or row.state not in SETTLED:
            break
        yield index, row
        index = _after(spec, node, row)
    yield index, None


def _after(spec: RuleSpec, node: Node, row: StepExecution) -> int | None:
    taken = (row.output or {}).get("taken") if node.kind == "branch" else None
    try:
        return following(spec, node.index, Settled(node.path, row.state, taken))  # type: ignore[arg-type]
    except HistoryMismatch as error:
        raise Refused(
            _("The branch “%(step)s” no longer has the way that the run went.") % {"step": node.id}
        ) from error
