"""Stored events that one process compares under two versions of a rule a second, and what memory it takes."""

import gc
import json
import time
from typing import Any

import psutil
from django.db import connection

from automation.engine import backtest
from automation.engine.rules import save_draft
from automation.models import Backtest, Rule
from northwind.bench import definitions
from northwind.bench.place import Place
from northwind.bench.result import Bar, Measured
from northwind.bench.tenants import make_tenants
from tenants.context import acting_for

EVENTS, RECORDS = 60_000, 500
FIRST, GOAL = 2000.0, 5000.0
MEMORY_FIRST, MEMORY_GOAL = 16.0, 4.0  # MB between a fifth of the way and its end
SLICE = 0.5

# A history as tickets have it: each event a change of the priority, with the snapshot of the ticket's own event.
HISTORY = """
INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch, body_sha256,
                              depth, path, matched_at)
SELECT e.tenant_id, 'record_changed', 'updated', '', e.model, e.record,
       e.facts || jsonb_build_object('change', 'updated', 'before', jsonb_build_object('priority', 'normal'),
         'after', jsonb_build_object('priority', u.priority),
         'snapshot', (e.facts -> 'snapshot') || jsonb_build_object('priority', u.priority)),
       'Ana', 'person', '', '', 0, '[]', now()
  FROM automation_event e,
       (SELECT n, (ARRAY['low', 'high', 'urgent'])[1 + n %% 3] AS priority FROM generate_series(1, %s) n) u
 WHERE e.tenant_id = %s AND e.change = 'created' AND e.model = 'helpdesk.ticket'
"""


def measure(place: Place) -> Measured:
    """One tenant's history, judged by the draft and the live version of a rule with two conditions and a branch."""
    records = place.size(RECORDS, least=5)
    each = EVENTS // RECORDS
    place.tell(f"writing {records * each} events")
    [tenant_id] = make_tenants(1, "past", tickets=records, rules=[_definition("high")])
    with connection.cursor() as cursor:
        cursor.execute(HISTORY, [each, tenant_id])
        cursor.execute("ANALYZE automation_event")
    with acting_for(tenant_id):
        rule = Rule.objects.get()
        save_draft(rule.pk, _definition("urgent"), base_revision=rule.draft.revision)
        made = backtest.start(rule.pk, most=100_000)
        place.tell("judging")
        memory, seconds = _work(made.pk)
        made.refresh_from_db()
    counts: dict[str, Any] = made.result["counts"]
    rate, growth = made.judged / seconds, (memory[-1] - memory[len(memory) // 5]) / 1e6
    figures = {"events_per_s": rate, "events": made.judged, "new": counts["new"], "lost": counts["lost"]}
    figures |= {"memory_growth_mb": growth, "result_kb": len(json.dumps(made.result)) / 1000}
    return Measured(
        figures,
        bars=[
            Bar("events a second", rate, FIRST, GOAL, at_most=False),
            Bar("growth of memory, MB", growth, MEMORY_FIRST, MEMORY_GOAL),
        ],
    )


def _work(backtest_id: int) -> tuple[list[int], float]:
    """Slice by slice, as a worker does it: what memory the process had after each, and how long it took."""
    memory, began = list[int](), time.perf_counter()
    while backtest.work(SLICE, backtest_id=backtest_id):
        gc.collect()
        memory.append(psutil.Process().memory_info().rss)
        if Backtest.objects.values_list("state", flat=True).get(pk=backtest_id) == "done":
            break
    return memory, time.perf_counter() - began


def _definition(priority: str) -> dict[str, Any]:
    becomes = {"id": "becomes", "field": "priority", "op": "changed_to", "value": priority}
    told = {"id": "told", "field": "subject", "op": "is_not_empty"}
    open_ = {"id": "open", "field": "status", "op": "in", "value": ["new", "open"]}
    note = definitions.step("note", "add_note", text="It is {{ ticket.priority }} now.")
    branch = {
        "id": "which",
        "kind": "branch",
        "arms": [{"id": "arm", "if": {"id": "if", "all": [open_]}, "steps": [note]}],
    }
    return definitions.rule([branch | {"otherwise": []}], condition={"id": "all", "all": [becomes, told]})
