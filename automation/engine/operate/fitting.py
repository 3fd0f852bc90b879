"""Which open dead letters a bulk job is for: those of a rule, a step, a reason and an error."""

from typing import Any

from django.db.models import QuerySet

from automation.core.alike import pattern
from automation.models import DeadLetter

LOOKED_AT = 1000  # letters that are fetched at a time


def fitting(filters: dict[str, Any]) -> "QuerySet[DeadLetter]":
    """The current tenant's open dead letters that fit, but for the error, which only Python can compare."""
    found = DeadLetter.objects.filter(resolved_at=None)
    if filters.get("rule_id") is not None:
        found = found.filter(run__rule_id=filters["rule_id"])
    if filters.get("of_event"):
        found = found.filter(run=None)
    if filters.get("step"):
        found = found.filter(step__path=filters["step"])
    if filters.get("reason"):
        found = found.filter(reason=filters["reason"])
    return found


def fits(filters: dict[str, Any], error: str) -> bool:
    """Whether the error of a letter is a case of the one that is looked for; any is where none is."""
    wanted = filters.get("error") or ""
    return not wanted or pattern(error) == wanted


def newest(filters: dict[str, Any]) -> int | None:
    """The number of the newest open dead letter that fits, its error too; None where none does."""
    found = fitting(filters).order_by("-id").values_list("id", "error")
    if not filters.get("error"):
        first = found.first()
        return first[0] if first else None
    return next((pk for pk, error in found.iterator(chunk_size=LOOKED_AT) if fits(filters, error)), None)


def count(filters: dict[str, Any]) -> int:
    """How many open dead letters fit, their errors too."""
    found = fitting(filters)
    if not filters.get("error"):
        return found.count()
    errors = found.order_by("id").values_list("error", flat=True).iterator(chunk_size=LOOKED_AT)
    return sum(fits(filters, error) for error in errors)


def like(letter_id: int) -> dict[str, Any]:
    """What `bulk.start` takes to work off the group of a letter: the same rule, step, reason and error.

    `DeadLetter.DoesNotExist` where the current tenant has none of that number.
    """
    letter = DeadLetter.objects.select_related("run", "step").get(pk=letter_id)
    return {
        "rule_id": letter.run.rule_id if letter.run else None,
        "step": letter.step.path if letter.step else "",
        "reason_code": letter.reason,
        "error": letter.error,
        "of_event": letter.run is None,
    }
