"""Events that no change of a record makes: those that somebody posts, and a person's start of a rule by hand."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models, transaction
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.core.facts import EVENT_PREFIX, cut_text, unshown, unstorable
from automation.engine.capture import captured, snapshot_of
from automation.engine.operate import Refused
from automation.engine.sources import current_origin
from automation.models import Rule
from automation.store import statements
from tenants.context import acting_for, owner_for_write
from tenants.models import Tenant, TenantOwned

NAME_LENGTH, KEY_LENGTH = 120, 200
DATA_BYTES = 64 * 1024

_INSERT = """
INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, actor_id, source, batch,
                              dedupe_key, body_sha256, root_event_id, parent_event_id, cause_rule_id, cause_run_id,
                              cause_step_id, depth, path)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant_id, kind, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
RETURNING id
"""
_FIRST = "SELECT id, body_sha256 FROM automation_event WHERE tenant_id = %s AND kind = %s AND dedupe_key = %s"


class DifferentBody(ValueError):
    """A key that was used before, for an event that says something else; that one, `event_id`, stays as it is."""

    def __init__(self, event_id: int) -> None:
        super().__init__(f"This key belongs to event {event_id}, which has another body.")
        self.event_id = event_id


@dataclass(slots=True)
class _Posted:
    """An event about to be written."""

    tenant_id: int
    kind: str
    name: str
    model: str = ""
    record: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    change: str = ""  # of a record taken up: what the rule listens to
    source: str = ""  # where it isn't that of whoever acts


def post_event(
    tenant: Tenant | int,
    name: str,
    *,
    record: models.Model | None = None,
    data: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> int:
    """Write a custom event in the caller's transaction; answer its id.

    `record` is the automatable record that it is about; `data` a JSON object of at most 64 KB and 32 levels, whose
    names conditions read as "event.<name>". The same `key` twice is one event: the second post answers the first one's
    id, or raises `DifferentBody`. ValueError for a name, key or data that can't be kept as they are, with the JSON
    pointer of what can't; LookupError for a record that the tenant doesn't have.
    """
    tenant_id = owner_for_write(tenant.pk if isinstance(tenant, Tenant) else tenant)
    posted = _Posted(tenant_id, "custom_event", _fitting("name", name, NAME_LENGTH), data=storable_data(data or {}))
    posted.key = None if key is None else _fitting("key", key, KEY_LENGTH)
    if record is not None:
        posted.model, posted.record = _name_of(record, tenant_id)
    return _write(posted)


def run_by_hand(rule_id: int, record: models.Model) -> int:
    """Start a rule on a record because a person asked for it; answer the id of the event, which its run will follow.

    Raises `Refused` where the rule isn't live, isn't started by hand, or is for other records; `Rule.DoesNotExist`
    and LookupError for a rule or record that the tenant doesn't have. What the person may do is the caller's to check.
    """
    tenant_id = owner_for_write(getattr(record, "tenant_id", None))
    model, record_id = _name_of(record, tenant_id)
    with acting_for(tenant_id):
        rule = Rule.objects.select_related("published").get(pk=rule_id, deleted_at=None)
    if not rule.on or rule.published is None:
        raise Refused(_("This rule is off."))
    if not _starts_by_hand(rule, model):
        raise Refused(_("This rule isn't one that is started by hand on such a record."))
    return _write(_Posted(tenant_id, "manual", str(rule.pk), model, record_id))


def post_standing(rule_id: int, *, model: str, record_id: int, change: str, key: str) -> int:
    """Write an event for one rule about a record as it stands, as if it had just been made so; answer its id.

    `change` is what the rule listens to. It passes each choice of sources. LookupError for a record that is gone.
    """
    posted = _Posted(owner_for_write(None), "record_changed", str(rule_id), model, record_id, key=key)
    posted.change, posted.source = change, "schedule"
    return _write(posted)


def manual_rules_for(record: TenantOwned) -> list[Rule]:
    """The live rules that a person may start on a record by hand, in the order in which they run."""
    model, _record_id = _name_of(record, record.tenant_id)
    with acting_for(record.tenant_id):
        live = Rule.objects.filter(on=True, deleted_at=None, published__definition__trigger__kind="manual")
        return [
            rule for rule in live.select_related("published").order_by("position", "id") if _starts_by_hand(rule, model)
        ]


def _starts_by_hand(rule: Rule, model: str) -> bool:
    trigger = rule.published.definition.get("trigger") or {} if rule.published else {}
    return trigger.get("kind") == "manual" and (trigger.get("params") or {}).get("model") == model


def _name_of(record: models.Model, tenant_id: int) -> tuple[str, int]:
    name = registry.model(record._meta.label_lower).name
    if getattr(record, "tenant_id", None) != tenant_id or record.pk is None:
        raise LookupError(f"There is no {name} {record.pk}.")
    return name, record.pk


def _write(posted: _Posted) -> int:
    body = [posted.name, posted.model, posted.record, posted.data]
    sha256 = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    origin = current_origin()
    cause = origin.cause
    with transaction.atomic(savepoint=False):
        source = posted.source or origin.source
        facts = json.dumps(_facts(posted, source) | origin.facts)
        values: list[Any] = [
            posted.tenant_id,
            posted.kind,
            posted.change,
            posted.name,
            posted.model,
            posted.record,
            facts,
            origin.actor[:200],
        ]
        values += [origin.actor_id, source, origin.batch, posted.key, sha256]
        values += [cause.root_event_id, cause.parent_event_id, cause.rule_id, cause.run_id, cause.step_id, cause.depth]
        made = statements.value(_INSERT, [*values, json.dumps(cause.path)])
        if made is None:
            return _first(posted, sha256)
        captured().tenants.add(posted.tenant_id)
        return int(made)


def _first(posted: _Posted, sha256: str) -> int:
    """The event that has the key: committed by now, for the insert has waited for it."""
    [(event_id, its_sha256)] = statements.rows(_FIRST, [posted.tenant_id, posted.kind, posted.key])
    if its_sha256 != sha256:
        raise DifferentBody(event_id)
    return int(event_id)


def _facts(posted: _Posted, source: str) -> dict[str, Any]:
    snapshot: dict[str, Any] = {}
    cut: list[str] = []
    if posted.record is not None:
        snapshot, cut = snapshot_of(registry.model(posted.model), posted.record)
    data: dict[str, Any] = {}
    for name, value in posted.data.items():
        data[name], was_cut = _cut(value)
        cut += [EVENT_PREFIX + name] if was_cut else []
    standing = {"change": "", "after": {}}
    if posted.change:
        watched = {path for path, one in registry.model(posted.model).fields.items() if one.watch}
        standing = {"change": "created", "after": {path: raw for path, raw in snapshot.items() if path in watched}}
    return {"before": {}, **standing, "snapshot": snapshot, "data": data, "cut": cut, "source": source}


def _cut(value: Any) -> tuple[Any, bool]:
    """The value with every text in it cut to what an event keeps, and whether one was."""
    if isinstance(value, str):
        return cut_text(value)
    if isinstance(value, list):
        items = [_cut(item) for item in value]
        return [item for item, _was_cut in items], any(was_cut for _item, was_cut in items)
    if isinstance(value, dict):
        pairs = {name: _cut(item) for name, item in value.items()}
        return {name: pair[0] for name, pair in pairs.items()}, any(pair[1] for pair in pairs.values())
    return value, False


def _fitting(what: str, text: str, length: int) -> str:
    if (odd := unshown(text)) is not None:
        raise ValueError(f"The {what} of an event can't hold {odd}, a character that can't be shown.")
    if not 0 < len(text) <= length:
        raise ValueError(f"The {what} of an event has 1 to {length} characters, not {len(text)}.")
    return text


def storable_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as JSON knows it; ValueError where it isn't such an object, or can't be stored, with the place."""
    if not isinstance(data, Mapping):
        raise ValueError("The data of an event is a JSON object.")  # noqa: TRY004 one kind of error for bad data
    try:
        odd = unstorable(dict(data))
        text = json.dumps(dict(data), cls=DjangoJSONEncoder, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The data of an event must be JSON: {error}.") from error
    if odd is not None:
        raise ValueError(f"The data of an event has a character at {odd} that can't be stored (NUL or half a pair).")
    if len(text.encode()) > DATA_BYTES:
        raise ValueError(f"The data of an event has at most {DATA_BYTES} bytes as JSON.")
    stored: dict[str, Any] = json.loads(text)
    return stored
