"""Plans recorded runs again with this release's code: their decisions, and the parameters of their steps."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _
from pydantic import ValidationError

from automation.core.erasing import ERASED
from automation.core.errors import TemplateError
from automation.core.histories import History, NoHistory, RecordedStep, read_history
from automation.core.replaying import Moved, replan
from automation.engine.filling import fill
from automation.engine.histories import history_of_run
from automation.engine.progress import RunInHand
from automation.engine.ruleset import Compiled, compile_version
from automation.models import Rule, RuleVersion, Run
from automation.store.events import EventRow

__all__ = ["Moved", "NoHistory", "NotKept", "replay_history", "replay_run", "runs_lately"]

TEMPLATE_FAILED = "template_error"


class NotKept(Exception):
    """What the run was decided on isn't kept any more, so nobody can say what it would be now."""


def replay_run(run_id: int) -> list[Moved]:
    """Plans a stored run of the current tenant again; what is decided otherwise now.

    `Run.DoesNotExist` for none, `NotKept` for one whose details, or whose event's, retention has removed.
    """
    kept = Run.objects.filter(pk=run_id, details_removed_at=None, event__details_removed_at=None)
    if Run.objects.filter(pk=run_id).exists() and not kept.exists():
        raise NotKept
    return replay_history(history_of_run(run_id))


def replay_history(data: Any) -> list[Moved]:
    """Plans a recorded run again; what is decided otherwise now. NoHistory for what isn't a recorded run.

    A run from whose event something was erased would decide on other values: it isn't planned.
    """
    history = read_history(data)
    if history.facts.get("erased") or _has_erased(history.facts):
        return []
    rule = Rule(pk=history.rule_id, name=history.rule, tenant_id=history.tenant_id)
    version = RuleVersion(pk=0, rule=rule, number=0, definition=history.definition)
    compiled = compile_version(version, rule)
    if compiled.spec is None:
        return [] if history.reason == "broken_reference" else [Moved("definition", "could be read", compiled.broken)]
    return replan(compiled.spec, history) or list(_filled(compiled, history))


def runs_lately(most: int) -> list[int]:
    """The ids of the tenant's newest runs, oldest first; those whose details are gone left out."""
    newest = (
        Run.objects.filter(details_removed_at=None, event__details_removed_at=None)
        .order_by("-id")
        .values_list("id", flat=True)[:most]
    )
    return sorted(newest)


def _filled(compiled: Compiled, history: History) -> Iterator[Moved]:
    """Parameters that come out otherwise; after a wait they were filled with values that aren't recorded."""
    run = _in_hand(compiled, history)
    for node in run.spec.nodes:
        step = history.steps.get(node.path)
        if step is None:
            continue
        if node.kind == "delay" and step.state == "succeeded":
            return
        if node.kind == "action" and step.given is not None and not _has_erased(step.given):
            yield from _differences(run, node, step)
        if step.state == "succeeded" and node.kind == "action":
            run.outputs[node.path] = _plain_output(step)


def _differences(run: RunInHand, node: Any, step: RecordedStep) -> Iterator[Moved]:
    action = run.rule.action(node)
    if action is None:
        return
    try:
        planned = fill(run, node, action).model_dump(mode="json")
    except (TemplateError, ValidationError, ValueError) as error:
        if step.reason != TEMPLATE_FAILED:
            yield Moved(node.path, _("parameters"), str(error).partition("\n")[0])
        return
    for name, value in planned.items():
        if step.given.get(name) != value:
            yield Moved(f"{node.path}/{name}", repr(step.given.get(name)), repr(value))


def _has_erased(value: Any) -> bool:
    return ERASED in json.dumps(value, default=str)


def _plain_output(step: RecordedStep) -> Any:
    """What later templates read of a step: its output without the note beside it."""
    return {name: value for name, value in (step.output or {}).items() if name != "note"}


def _in_hand(compiled: Compiled, history: History) -> RunInHand:
    """A run as the engine has one in hand, as far as filling parameters needs it."""
    event = history.event
    row = EventRow(
        id=event["id"],
        tenant_id=history.tenant_id,
        kind=event["kind"],
        change=event["change"],
        name=event["name"],
        model=event["model"],
        record=event["record"],
        facts=history.facts,
        actor="",
        source=event["source"],
        batch=event["batch"],
        cause=None,  # type: ignore[arg-type]  # no parameter depends on it
        created_at=history.at,
    )
    tenant: Any = SimpleNamespace(tenant_id=history.tenant_id, name=history.tenant, zone=history.zone)
    return RunInHand(id=0, tenant=tenant, rule=compiled, event=row, was="running", now=history.at)
