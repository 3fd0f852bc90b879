"""Explanations as JSON objects, for programs and for pages that ask in the background."""

from typing import Any

from automation.engine.answers import Answer, Explanation


def explanation_json(found: Explanation) -> dict[str, Any]:
    """The whole answer: rule, record, sentence, counts by gate, and one object an event; `after` for the next ask."""
    return {
        "rule": {"id": found.rule.pk, "name": found.rule.name},
        "record": {"model": found.model, "id": found.record, "label": found.record_label},
        "sentence": found.sentence,
        "counts": found.counts,
        "answers": [answer_json(answer) for answer in found.answers],
        "earlier": found.earlier,
        "after": found.answers[-1].event.pk if found.more else None,
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """One event at one rule."""
    event, run = answer.event, answer.run
    return {
        "event": {
            "id": event.pk,
            "at": event.created_at.isoformat(),
            "kind": event.kind,
            "change": event.change,
            "name": event.name,
            "source": event.source,
            "batch": event.batch,
            "actor": event.actor,
            "changed": sorted(event.facts.get("after") or ()),
        },
        "rule": {"id": answer.rule_id, "name": answer.rule_name, "version": answer.version},
        "gate": str(answer.gate),
        "reason": answer.reason,
        "sentence": answer.sentence,
        "ran": answer.ran,
        "agrees": answer.agrees,
        "run": {"id": run.pk, "state": run.state, "reason": run.reason} if run else None,
        "comparisons": [
            {
                "id": one.id,
                "text": one.text,
                "wanted": one.wanted,
                "read": one.read,
                "result": one.result,
                "reason": one.reason,
                "decided": one.decided,
            }
            for one in answer.comparisons
        ],
    }
