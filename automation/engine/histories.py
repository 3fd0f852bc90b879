"""Writes a stored run as JSON, so that it can be planned again anywhere, at any time, by any release."""

import json
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from automation.core.histories import FORMAT
from automation.models import Run, StepExecution
from tenants.models import Tenant


def history_of_run(run_id: int) -> dict[str, Any]:
    """A run of the current tenant as a JSON object; `Run.DoesNotExist` where it has none of that id.

    It holds what the event said about the record: treat it like the record itself.
    """
    run = Run.objects.select_related("rule", "rule_version", "event").get(pk=run_id)
    tenant, event = Tenant.objects.get(pk=run.tenant_id), run.event
    found = {
        "history": FORMAT,
        "tenant": {"id": tenant.pk, "name": tenant.name, "zone": tenant.time_zone},
        "rule": {"id": run.rule_id, "name": run.rule.name, "version": max(run.rule_version.number, 0)},
        "definition": run.rule_version.definition,
        "event": {
            "id": event.pk,
            "at": event.created_at.isoformat(),
            "kind": event.kind,
            "change": event.change,
            "name": event.name,
            "model": event.model,
            "record": event.record,
            "source": event.source,
            "batch": event.batch,
            "facts": event.facts,
        },
        "run": {
            "state": run.state,
            "reason": run.reason,
            "is_replay": run.forked_from_run_id is not None or run.origin != "event",
            "epoch": run.epoch,
        },
        "steps": [_step(step) for step in StepExecution.objects.filter(run=run).order_by("created_at", "id")],
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, cls=DjangoJSONEncoder))
    return plain


def _step(step: StepExecution) -> dict[str, Any]:
    return {
        "path": step.path,
        "kind": step.kind,
        "action": step.action,
        "state": step.state,
        "reason": step.reason,
        "epoch": step.epoch,
        "key": step.idempotency_key,
        "given": step.input,
        "output": step.output,
    }
