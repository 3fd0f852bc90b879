"""Groups what failed for good by its error, with the context of the newest case."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from automation.core.alike import pattern
from automation.models import DeadLetter

COUNTED = 10_000


@dataclass(slots=True)
class ErrorGroup:
    """Open dead letters of one rule, step, reason and kind of error; `snapshot` is the context of the newest."""

    rule_id: int | None
    rule_name: str
    step: str
    reason: str
    error: str  # without its particulars
    example: str = ""  # the newest, in full
    count: int = 0
    newest_id: int = 0
    oldest_at: datetime | None = None
    newest_at: datetime | None = None
    letter_ids: list[int] = field(default_factory=list)  # the newest ones, `shown` at most, and their runs
    run_ids: list[int] = field(default_factory=list)
    snapshot: dict[str, Any] = field(default_factory=dict)

    @property
    def filters(self) -> dict[str, Any]:
        """What a bulk job takes to work off just this group; `automation_retry --group` with any of its letters."""
        return {"rule_id": self.rule_id, "step": self.step, "reason": self.reason, "error": self.error}


SHOWN = 20


def error_groups(*, rule_id: int | None = None, reason: str = "", shown: int = SHOWN) -> list[ErrorGroup]:
    """The current tenant's open dead letters by error, the largest group first; the newest `COUNTED` are looked at.

    Of each group the numbers of the newest `shown` letters are named.
    """
    letters = DeadLetter.objects.filter(resolved_at=None)
    if rule_id is not None:
        letters = letters.filter(run__rule_id=rule_id)
    if reason:
        letters = letters.filter(reason=reason)
    groups: dict[tuple[int | None, str, str, str], ErrorGroup] = {}
    columns = ("id", "run_id", "run__rule_id", "run__rule__name", "step__path", "reason", "error", "opened_at")
    for one in letters.order_by("-id").values(*columns)[:COUNTED].iterator(chunk_size=1000):
        path, error = one["step__path"] or "", pattern(one["error"])
        key = (one["run__rule_id"], path, one["reason"], error)
        group = groups.get(key)
        if group is None:
            group = groups[key] = ErrorGroup(key[0], one["run__rule__name"] or "", path, one["reason"], error)
            group.newest_id, group.newest_at, group.example = one["id"], one["opened_at"], one["error"]
        group.count += 1
        group.oldest_at = one["opened_at"]
        if len(group.letter_ids) < shown:
            group.letter_ids.append(one["id"])
            group.run_ids += [] if one["run_id"] is None else [one["run_id"]]
    newest = dict(
        DeadLetter.objects.filter(pk__in=[group.newest_id for group in groups.values()]).values_list("id", "snapshot")
    )
    for group in groups.values():
        group.snapshot = newest.get(group.newest_id) or {}
    return sorted(groups.values(), key=lambda group: (-group.count, -group.newest_id))
