"""The page that explains one run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from automation.core.conditions import LeafReport
from automation.core.states import TERMINAL_RUN
from automation.definitions.tree import GROUP_MODES
from automation.engine import sayings
from automation.engine import trace as engine_trace
from automation.engine.reports import ConditionReport, StepReport
from automation.models import Run
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
    """A step as people count it: "3", and "3.1" inside a branch; `arm` is the arm that it lies in."""

    number: str
    step: StepReport
    indent: int
    arm: str


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
        "steps": numbered(found.steps, found.definition),
        "is_live_version": found.run.rule.published_id == found.run.rule_version_id,
        "live": live,
        "now": timezone.now(),
        "stopping": live and found.run.cancel_requested_at is not None,
        "may_operate": request.membership.may("publisher"),
        "may_see_answers": request.membership.may("admin"),
    }
    return render(request, "automation/run.html", shown)


def numbered(steps: Sequence[StepReport], definition: Mapping[str, Any]) -> list[NumberedStep]:
    """The steps with the numbers that people read; one that the definition doesn't have has none."""
    places = {place.step_id: place for place in _places(definition.get("steps"), "", 0, "", 1)}
    found = [(step, places.get(step.id, NOWHERE)) for step in steps]
    return [NumberedStep(place.number, step, place.indent, place.arm) for step, place in found]


@dataclass(frozen=True, slots=True)
class _Place:
    step_id: str = ""
    number: str = ""
    indent: int = 0
    arm: str = ""


NOWHERE = _Place()


def _places(steps: Any, before: str, indent: int, arm: str, first: int) -> Iterator[_Place]:
    """Where each step of a list lies; numbers begin with `first`, after what is around them."""
    for number, step in enumerate(steps or (), start=first):
        place = _Place(str(step.get("id")), f"{before}{number}", indent, arm)
        yield place
        inside = 1
        for arm_id, nested in _nested(step):
            yield from _places(nested, f"{place.number}.", indent + 1, arm_id, inside)
            inside += len(nested)


def _nested(step: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """The lists of steps in a branch, each with the name of its arm."""
    for arm in step.get("arms") or ():
        yield str(arm.get("id")), arm.get("steps") or ()
    yield "otherwise", step.get("otherwise") or ()


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
