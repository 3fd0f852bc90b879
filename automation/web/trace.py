"""The page that explains one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from automation.core.conditions import LeafReport
from automation.core.states import TERMINAL_RUN
from automation.definitions.tree import GROUP_MODES
from automation.engine import trace as engine_trace
from automation.engine.reports import ConditionReport, StepReport
from automation.models import Run
from automation.web import sayings
from automation.web.headline import headline
from tenants.middleware import TenantRequest
from tenants.permissions import needs


@dataclass(frozen=True, slots=True)
class ConditionNode:
    """A group with its parts, or one comparison with its report; the shape that the page draws."""

    mode: str
    parts: list["ConditionNode"] = field(default_factory=list)
    leaf: LeafReport | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class NumberedStep:
    """A step as people count it: "3", and "3.1" inside a branch."""

    number: str
    step: StepReport
    indent: int


@require_safe
@needs("viewer")
def run(request: TenantRequest, tenant_slug: str, run_id: int) -> HttpResponse:
    """Shows why a run ran, what it did, and what it waits for."""
    try:
        found = engine_trace.trace(run_id)
    except Run.DoesNotExist as missing:
        raise Http404 from missing
    live = found.state not in TERMINAL_RUN
    said = sayings.comparisons(found.definition, found.run.model)
    shown = {
        "trace": found,
        "run": found.run,
        "headline": headline(found),
        "condition": _tree(found.definition.get("condition"), found.condition, said),
        "said": said,
        "steps": numbered(found.steps),
        "is_live_version": found.run.rule.published_id == found.run.rule_version_id,
        "live": live,
        "now": timezone.now(),
        "stopping": live and found.run.cancel_requested_at is not None,
        "may_operate": request.membership.may("publisher"),
    }
    return render(request, "automation/run.html", shown)


def numbered(steps: Sequence[StepReport]) -> list[NumberedStep]:
    """The steps with the numbers that people read; a step's level is where its path lies."""
    found: list[NumberedStep] = []
    stack: list[tuple[int, int]] = []  # (level, number) from the outside in
    for step in steps:
        while stack and stack[-1][0] > step.level:
            stack.pop()
        if stack and stack[-1][0] == step.level:
            stack[-1] = (step.level, stack[-1][1] + 1)
        else:
            stack.append((step.level, 1))
        found.append(NumberedStep(".".join(str(number) for _level, number in stack), step, len(stack) - 1))
    return found


def _tree(definition: Any, report: ConditionReport | None, said: Mapping[str, str]) -> ConditionNode | None:
    """The condition as it is written, with what each comparison read."""
    if report is None or not isinstance(definition, dict):
        return None
    return _node(definition, {leaf.id: leaf for leaf in report.leaves}, said)


def _node(part: dict[str, Any], leaves: Mapping[str, LeafReport], said: Mapping[str, str]) -> ConditionNode:
    mode = next((name for name in GROUP_MODES if name in part), "")
    if mode:
        return ConditionNode(mode, [_node(one, leaves, said) for one in part[mode] if isinstance(one, dict)])
    leaf_id = str(part.get("id"))
    return ConditionNode("", leaf=leaves.get(leaf_id), text=said.get(leaf_id, leaf_id))
