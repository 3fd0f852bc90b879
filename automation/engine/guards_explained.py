"""Says why a rule that matched was suppressed all the same: the chain, the other run, or the number reached."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from automation.conf import load
from automation.engine.labels import labels
from automation.engine.match import RATE_LIMIT, RATE_MINUTES
from automation.engine.ruleset import by_version
from automation.models import Event, Limits, Rule, Run, ServedBatch, StepExecution

LOOPS = frozenset({"loop_same_rule", "loop_depth"})
MOST = 200  # earlier runs of a rule for a record, among which the one that waited is looked for


class Guards:
    """Suppressed runs with what their sentences name, read at once."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.suppressed = {run.pk: run for run in runs}
        self._rules: dict[int, str] | None = None
        self._stops: dict[int, str] | None = None
        self._served: dict[tuple[int, str], int | None] = {}

    def sentence(self, run: Run, event: Event, *, undecided: bool) -> str:
        """Why this run was suppressed."""
        if undecided:
            return _undecided(run.reason)
        if run.reason == "import_skipped":
            return self._import(run, event)
        names = {"reason": run.reason, **self._names(run, event)}
        return _sentences().get(run.reason, _("It matched, and was not started: %(reason)s.")) % names

    def _names(self, run: Run, event: Event) -> dict[str, Any]:
        if run.reason in LOOPS:
            limits = Limits.objects.filter(tenant_id=run.tenant_id).first()
            return {"chain": self._chain(event), "depth": event.depth, "most": limits.max_depth if limits else ""}
        if run.reason == "already_waiting":
            return {"other": _waiting_before(run)}
        if run.reason == "stopped_by_rule":
            return {"rule": self._stopper(event.pk)}
        return {"count": load().loop_stop if run.reason == "loop_budget" else RATE_LIMIT, "minutes": RATE_MINUTES}

    def _import(self, run: Run, event: Event) -> str:
        """For a rule that skips imports, or has had its one run for this one."""
        version = by_version([run.rule_version_id]).get(run.rule_version_id)
        if version is None or version.spec is None or version.spec.imports != "once":
            return _("The change came by an import, and the rule skips imports.")
        key = (run.rule_id, event.batch)
        if key not in self._served:
            served = ServedBatch.objects.filter(rule_id=run.rule_id, batch=event.batch).values("event_id")
            first = Run.objects.filter(rule_id=run.rule_id, event_id__in=served, origin="event", forked_from_run=None)
            self._served[key] = first.values_list("pk", flat=True).first()
        names = {"batch": event.batch, "other": self._served[key] or "?"}
        return _("The rule runs once for each import: for “%(batch)s” that was run %(other)s.") % names

    def _chain(self, event: Event) -> str:
        """The rules of a chain with their records, first to last: "Reopen (ticket 12) → Escalate (ticket 12)"."""
        keys = [_key(str(key)) for _rule_id, key in event.path]
        named, rules = labels(keys), self._rule_names()
        parts = [
            _("%(rule)s (%(record)s)")
            % {"rule": rules.get(rule_id) or f"#{rule_id}", "record": named.get(key, text) if key else text}
            for (rule_id, text), key in zip(event.path, keys, strict=True)
        ]
        return " → ".join(parts)

    def _rule_names(self) -> dict[int, str]:
        if self._rules is None:
            events = [run.event for run in self.suppressed.values() if run.reason in LOOPS]
            wanted = {rule_id for event in events for rule_id, _key in event.path}
            self._rules = dict(Rule.objects.filter(pk__in=wanted).values_list("id", "name"))
        return self._rules

    def _stopper(self, event_id: int) -> str:
        """The rule whose step ended the later rules of an event."""
        if self._stops is None:
            self._stops = _stoppers({run.event_id for run in self.suppressed.values()})
        return self._stops.get(event_id, "")


def _stoppers(event_ids: set[int]) -> dict[int, str]:
    steps = StepExecution.objects.filter(run__event_id__in=event_ids, kind="stop", run__origin="event")
    found: dict[int, str] = {}
    for step in steps.select_related("run__rule").order_by("run_id"):
        version = by_version([step.run.rule_version_id]).get(step.run.rule_version_id)
        nodes = version.spec.nodes if version and version.spec else ()
        if any(node.path == step.path and node.ends == "later_rules" for node in nodes):
            found.setdefault(step.run.event_id, step.run.rule.name)
    return found


def _waiting_before(run: Run) -> int | str:
    earlier = Run.objects.filter(rule_id=run.rule_id, model=run.model, record=run.record, id__lt=run.pk)
    for other in earlier.exclude(state="suppressed").order_by("-id")[:MOST]:
        if other.ended_at is None or other.ended_at >= run.created_at:
            return other.pk
    return "?"


def _key(text: str) -> tuple[str, int] | None:
    model, _colon, number = text.rpartition(":")
    return (model, int(number)) if number.isdecimal() and model != "event" else None


def _undecided(reason: str) -> str:
    if reason == "broken_reference":
        return _("It could not be judged: something that the rule names is gone, or the version can't be read.")
    return _("It could not be judged: a field that its condition reads is unknown, or holds what doesn't fit it.")


def _sentences() -> dict[str, str]:
    return {
        "loop_same_rule": _("A loop was stopped: the rule ran for this record before in the same chain, %(chain)s."),
        "loop_depth": _("The chain had come to its longest, %(depth)d of %(most)s rules deep: %(chain)s."),
        "loop_budget": _("What began this chain had caused %(count)d runs already: it goes no further."),
        "rate": _(
            "The rule had run %(count)d times for this record in %(minutes)d minutes, without a person changing it: it "
            "is held from then on."
        ),
        "already_waiting": _("Run %(other)s of the rule was waiting for this record, and the rule keeps that one."),
        "stopped_by_rule": _("The rule “%(rule)s”, which comes before it, ends the later rules of the event."),
        "limit_per_record": _("The rule had run for this record as often as its limit allows."),
    }
