"""The list of a tenant's rules in the order in which they start."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from automation.core.errors import Problem
from automation.engine import lists, sayings
from automation.engine.lists import RuleLine
from automation.engine.references import References, problems_of
from automation.engine.rules.deleting import RESTORABLE, deleted
from tenants.middleware import TenantRequest
from tenants.permissions import needs

PAGE = 50
STATES = ("on", "off", "problem")
FAILED = ("failed", "compensation_failed")


@dataclass(frozen=True, slots=True)
class Row:
    """A rule in the list: its sentence ("" while its draft isn't a rule yet), the problems of its live version."""

    line: RuleLine
    place: int
    sentence: str
    problems: list[Problem]
    done: int
    failed: int

    @property
    def needs_attention(self) -> bool:
        """Whether somebody should look at it."""
        line = self.line
        return bool(self.problems or line.dead_letters or line.pause or line.owner_gone)


@require_safe
@needs("viewer")
def rules(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Shows the rules that fit the search, with their switch, order, counts and problems."""
    if request.GET.get("state") == "deleted":
        return _deleted(request)
    rows = _rows(lists.rules_with_counts(), References(request.tenant.pk))
    text, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    shown = [row for row in rows if _fits(row, text=text, state=state)]
    paged = Paginator(shown, PAGE).get_page(request.GET.get("page"))
    page = {
        "rows": paged.object_list,
        "paged": paged,
        "all": len(rows),
        "on": sum(row.line.rule.on for row in rows),
        "attention": sum(row.needs_attention for row in rows),
        "q": text,
        "state": state,
        "filtered": bool(text or state in STATES),
        "may_edit": request.membership.may("editor"),
        "may_publish": request.membership.may("publisher"),
    }
    return render(request, "automation/rules.html", page)


def page_of(place: int) -> int:
    """The page of the unfiltered list on which the rule of that place stands."""
    return (place - 1) // PAGE + 1


def _deleted(request: TenantRequest) -> HttpResponse:
    """The rules that were deleted and can still be brought back."""
    shown = {"rules": deleted(), "days": RESTORABLE.days, "may_publish": request.membership.may("publisher")}
    return render(request, "automation/rules_deleted.html", shown)


def _rows(found: Sequence[RuleLine], references: References) -> list[Row]:
    names = sayings.Names()
    return [_row(line, place, references, names) for place, line in enumerate(found, start=1)]


def _row(line: RuleLine, place: int, references: References, names: sayings.Names) -> Row:
    problems = problems_of(line.definition, references)
    published = line.version is not None
    return Row(
        line=line,
        place=place,
        sentence=sayings.sentence(line.definition, names) if published or not problems else "",
        problems=problems if published else [],
        done=line.recent.get("succeeded", 0),
        failed=sum(line.recent.get(state, 0) for state in FAILED),
    )


def _fits(row: Row, *, text: str, state: str) -> bool:
    """Whether a rule has the words in its name or sentence, and the state that is asked for."""
    wanted = text.casefold() in f"{row.line.rule.name} {row.sentence}".casefold()
    if state == "problem":
        return wanted and row.needs_attention
    return wanted and (state not in STATES or row.line.rule.on is (state == "on"))
