"""What a backtest has found so far, as plain values."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.engine.backtest_judging import Judging, versions
from automation.engine.ruleset import compile_version
from automation.models import Backtest, RuleVersion
from automation.store import backtests


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """A comparison: `counts`, `samples` (of new, lost, undecidable and both: at most 100 each) and `estimates`.

    A sample says `because` of what it is so, read from its event as that is stored now; None where the event is gone.
    `estimate` says the estimates in words, `remarks` what is only approximate. `outdated`: the draft has moved on.
    """

    id: int
    rule: str
    state: str
    error: str
    revision: int | None
    outdated: bool
    against: int | None
    since: datetime
    total: int
    judged: int
    asked_by: str
    ended_at: datetime | None
    counts: dict[str, int]
    samples: dict[str, list[dict[str, Any]]]
    estimates: dict[str, Any]
    estimate: str
    remarks: list[str]

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self), cls=DjangoJSONEncoder))
        return found


def report(backtest: Backtest) -> BacktestReport:
    """The report of a backtest of the current tenant, also of one that is under way."""
    result = backtest.result
    draft = getattr(backtest.rule, "draft", None)
    return BacktestReport(
        id=backtest.pk,
        rule=backtest.rule.name,
        state=backtest.state,
        error=backtest.error,
        revision=backtest.revision,
        outdated=backtest.revision is not None and draft is not None and draft.revision != backtest.revision,
        against=backtest.against.number if backtest.against else None,
        since=backtest.since,
        total=backtest.total,
        judged=backtest.judged,
        asked_by=backtest.asked_by,
        ended_at=backtest.ended_at,
        counts=result["counts"],
        samples=_explained(backtest),
        estimates=result["estimates"],
        estimate=_estimate(result["estimates"]),
        remarks=_remarks(backtest),
    )


def _explained(backtest: Backtest) -> dict[str, list[dict[str, Any]]]:
    """The samples, newest first, each with the reason; values aren't kept with them, so that they go with the event."""
    samples: dict[str, list[dict[str, Any]]] = backtest.result["samples"]
    ids = [one["event"] for kind, found in samples.items() if kind != "both" for one in found]
    known = {row.id: row for row in backtests.by_ids(backtest.tenant_id, ids)} if ids else {}
    draft, live = versions(backtest.tenant_id, backtest.rule, backtest.definition, backtest.against_id)
    judging = Judging(draft, live, backtest.result)
    known |= judging.as_of_today(list(known.values()), {})
    return {
        kind: [
            {**one, "because": judging.because(kind, known[one["event"]]) if one["event"] in known else None}
            for one in sorted(found, key=lambda one: -one["event"])
        ]
        for kind, found in samples.items()
    }


def _estimate(estimates: dict[str, Any]) -> str:
    sends = {kind: estimates["sends"].get(kind, 0) for kind in ("mail", "message", "call")}
    whole = _("%(runs)s runs, %(steps)s steps, %(mail)s mails, %(message)s text messages, %(call)s calls")
    return whole % {"runs": estimates["runs"], "steps": estimates["steps"], **sends}


def _remarks(backtest: Backtest) -> list[str]:
    remarks = []
    today = backtest.result["today"]
    if today:
        remarks.append(
            _("Read as they are today, for old values are not kept: %(fields)s. What hangs on them is approximate.")
            % {"fields": ", ".join(_label(backtest, path) for path in sorted(today))}
        )
    spec = compile_version(
        RuleVersion(pk=0, rule=backtest.rule, number=0, definition=backtest.definition), backtest.rule
    ).spec
    if spec is None:
        return remarks
    kinds = [node.kind for node in spec.nodes if not node.off]
    if "delay" in kinds and "branch" in kinds[kinds.index("delay") :]:
        remarks.append(_("Branches after a wait are estimated on the values that the event had."))
    if spec.again != "both" or spec.limit is not None or spec.imports == "once":
        remarks.append(_("Fewer runs may start: whether one waits already, and limits, aren't looked at."))
    return remarks


def _label(backtest: Backtest, path: str) -> str:
    params = (backtest.definition.get("trigger") or {}).get("params") or {}
    entry = registry.models.get(params.get("model", ""))
    return entry.fields[path].label if entry and path in entry.fields else path
