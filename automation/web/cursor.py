"""Pages of a long list by the id of its last row: no count, and nothing is skipped when rows come in meanwhile."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

PAGE = 50
BIGGEST_ID = 2**63 - 1

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """Rows newest first, and the ids from which the pages beside this one begin; None where there is none."""

    rows: list[M]
    older: int | None
    newer: int | None


def number(text: str | None) -> int | None:
    """A whole number that may be an id; None for anything else, since what isn't one names nothing."""
    if not text or not text.isascii() or not text.isdigit() or len(text) > len(str(BIGGEST_ID)):
        return None
    found = int(text)
    return found if found <= BIGGEST_ID else None


def page(rows: QuerySet[M], request: HttpRequest) -> Page[M]:
    """The page that `before` or `after` in the address asks for; the newest rows without either."""
    before, after = number(request.GET.get("before")), number(request.GET.get("after"))
    if after is not None:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: PAGE + 1])
        shown = found[:PAGE][::-1]
        return Page(shown, older=shown[-1].pk if shown else None, newer=shown[0].pk if len(found) > PAGE else None)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE + 1])
    shown = found[:PAGE]
    more = len(found) > PAGE
    return Page(
        shown, older=shown[-1].pk if more else None, newer=shown[0].pk if before is not None and shown else None
    )
