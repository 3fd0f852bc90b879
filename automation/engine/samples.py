"""What a rule is tried out on: a stored event, a record as it is now, a past run, or facts that somebody wrote."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.conditions import leaves
from automation.core.operators import OPERATORS
from automation.core.spec import RuleSpec, TriggerSpec
from automation.engine.capture import snapshot_of
from automation.engine.operate import Refused
from automation.engine.posting import storable_data
from automation.models import Event, Run, StepExecution

OWN_JSON = ("model", "record", "change", "name", "source", "before", "after", "snapshot", "data")
OBJECTS = ("before", "after", "snapshot", "data")
KINDS: Mapping[str, type] = {
    **dict.fromkeys(OBJECTS, dict),
    **dict.fromkeys(("model", "change", "name", "source"), str),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """An event to try a rule on; `at` None is now, `recorded` holds the outputs of a past run's steps by path.

    `made_up` says that the record in `facts` doesn't exist; `remarks` what was assumed, in sentences.
    """

    origin: str
    kind: str
    model: str
    record: int | None
    facts: dict[str, Any]
    change: str = ""
    name: str = ""
    source: str = "person"
    actor: str = ""
    batch: str = ""
    depth: int = 0
    path: list[Any] = field(default_factory=list)
    at: datetime | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)
    made_up: bool = False
    remarks: tuple[str, ...] = ()


def of_event(event_id: int) -> Sample:
    """A stored event, as it was; `Event.DoesNotExist` where the current tenant has none of that id."""
    return _of_event(Event.objects.get(pk=event_id), origin=_("event %s") % event_id)


def of_run(run_id: int) -> Sample:
    """The event of a past run, with what its steps put out; `Run.DoesNotExist` where there is none."""
    run = Run.objects.select_related("event").get(pk=run_id)
    done = StepExecution.objects.filter(run=run, kind="action", state="succeeded")
    outputs = dict(done.values_list("path", "output"))
    return replace(_of_event(run.event, origin=_("run %s") % run_id), recorded=outputs)


def of_record(
    model: str,
    record: int,
    spec: RuleSpec,
    *,
    rule_id: int | None,
    was: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
) -> Sample:
    """A record as it is now, as if what the rule listens to had just happened to it.

    `was` gives values before the change (raw, by path): those fields count as changed. LookupError for a record that
    the tenant doesn't have; `Refused` where the rule is for other records.
    """
    trigger = spec.trigger
    if model != trigger.model:
        raise Refused(_("This rule is for records of %(model)s.") % {"model": trigger.model})
    entry = registry.model(model)
    snapshot, cut = _present(entry, record)
    change = _change(trigger)
    before, after, remarks = _pretended(entry, spec, change, snapshot, dict(was or {}))
    facts = _facts(change, before=before, after=after, snapshot=snapshot, data=dict(data or {}), cut=cut)
    return _sample(trigger, facts, record, origin=f"{model}:{record}", rule_id=rule_id, remarks=remarks)


def of_json(given: Any, spec: RuleSpec, *, rule_id: int | None) -> Sample:
    """Facts that somebody wrote: an object with the keys of `OWN_JSON`, all of which may be left out.

    With `record` the record's present values fill what `snapshot` doesn't name; without, the record is made up. Raises
    `Refused` for what isn't such an object, LookupError for a record that the tenant doesn't have.
    """
    given = _own(given)
    trigger, record = spec.trigger, given.get("record")
    if given.get("model", trigger.model) != trigger.model:
        raise Refused(_("This rule is for records of %(model)s.") % {"model": trigger.model})
    _refuse_unknown_fields(given, trigger.model)
    snapshot, cut = dict(given.get("snapshot", {})), list[str]()
    if record is not None:
        present, cut = _present(registry.model(trigger.model), record)
        snapshot = present | snapshot
    change = given.get("change", _change(trigger))
    before, after = dict(given.get("before", {})), dict(given.get("after", {}))
    if change == "created" and not after:
        after = dict(snapshot)
    facts = _facts(change, before=before, after=after, snapshot=snapshot | after, data=given.get("data", {}), cut=cut)
    sample = _sample(trigger, facts, record, origin=_("your own JSON"), rule_id=rule_id)
    sample = replace(sample, made_up=record is None and trigger.model != "", source=given.get("source", sample.source))
    return replace(sample, name=given.get("name", sample.name))


def _refuse_unknown_fields(given: Mapping[str, Any], model: str) -> None:
    """`Refused` for the value of a field that such records don't have: nothing would ever read it."""
    entry = registry.models.get(model)
    for part in ("snapshot", "before", "after"):
        known = entry.fields if entry is not None else {}
        wrong = next((name for name in given.get(part, {}) if name not in known), None)
        if wrong is not None:
            names = {"model": model or "-", "field": str(wrong)[:80], "near": ", ".join(_near(wrong, known)) or "-"}
            raise Refused(_("A %(model)s has no field “%(field)s”. It has: %(near)s") % names)


def _near(name: str, known: Iterable[str]) -> list[str]:
    """The names that were probably meant, or all."""
    return get_close_matches(name, list(known), n=5, cutoff=0.5) or sorted(known)


def _present(entry: Automatable, record: int) -> tuple[dict[str, Any], list[str]]:
    """The values of a record of the current tenant; LookupError where it has none of that id."""
    if not entry.model._default_manager.filter(pk=record).exists():
        raise LookupError(f"There is no {entry.name} {record}.")
    return snapshot_of(entry, record)


def _own(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refused(_("The facts are a JSON object."))
    unknown = sorted(set(given) - set(OWN_JSON))
    if unknown:
        names = {"name": str(unknown[0])[:80], "known": ", ".join(OWN_JSON)}
        raise Refused(_("“%(name)s” is not one of: %(known)s.") % names)
    wrong = next((name for name in KINDS if name in given and not isinstance(given[name], KINDS[name])), None)
    if wrong in OBJECTS:
        raise Refused(_("“%(name)s” is a JSON object.") % {"name": wrong})
    if wrong is not None:
        raise Refused(_("“%(name)s” is a text.") % {"name": wrong})
    record = given.get("record")
    if record is not None and (isinstance(record, bool) or not isinstance(record, int)):
        raise Refused(_("“record” is the number of a record."))
    try:
        return storable_data(given)
    except ValueError as error:
        raise Refused(str(error)) from error


def _of_event(event: Event, *, origin: str) -> Sample:
    if event.details_removed_at is not None or not event.facts:
        raise Refused(_("What this event said isn't kept any more."))
    return Sample(
        origin=origin,
        kind=event.kind,
        model=event.model,
        record=event.record,
        facts=event.facts,
        change=event.change,
        name=event.name,
        source=event.source,
        actor=event.actor,
        batch=event.batch,
        depth=event.depth,
        path=event.path,
        at=event.created_at,
    )


def _change(trigger: TriggerSpec) -> str:
    """What is taken to have happened: an update where the rule listens to one."""
    return next((one for one in ("updated", "created", "deleted") if one in trigger.on), "")


def _pretended(
    entry: Automatable, spec: RuleSpec, change: str, snapshot: Mapping[str, Any], was: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Before, after, and what was assumed about them."""
    unknown = sorted(set(was) - set(entry.fields))
    if unknown:
        names = {"model": entry.label, "field": unknown[0][:80], "near": ", ".join(_near(unknown[0], entry.fields))}
        raise Refused(_("A %(model)s has no field “%(field)s”. It has: %(near)s") % names)
    watched = {path: snapshot.get(path) for path in entry.watched}
    if change == "created":
        return {}, {path: raw for path, raw in watched.items() if raw not in (None, "", [])}, ()
    if change == "deleted":
        return watched, {}, ()
    if change != "updated":
        return {}, {}, ()
    changed = list(was) or [path for path in _listened(spec) if path in watched]
    if not was and changed:
        remark = _("Taken as just changed, from nothing: %(fields)s.") % {"fields": ", ".join(changed)}
        return dict.fromkeys(changed), {path: watched[path] for path in changed}, (remark,)
    return was, {path: snapshot.get(path) for path in was}, ()


def _listened(spec: RuleSpec) -> Iterable[str]:
    """The fields that the rule wants to see changed."""
    found = dict.fromkeys(sorted(spec.trigger.fields))
    for leaf in leaves(spec.condition):
        operator = OPERATORS.get(leaf.op)
        if operator is not None and operator.reads != "value":
            found[leaf.field] = None
    return found


def _facts(change: str, **parts: Any) -> dict[str, Any]:
    return {"change": change, **parts, "cut": sorted(parts["cut"]), "source": "person"}


def _outcome(trigger: TriggerSpec, data: Mapping[str, Any]) -> str:
    """The outcome of an event that isn't a change: what its data name, or the first that the rule listens to."""
    return next((one for one in data.values() if isinstance(one, str) and one in trigger.on), min(trigger.on))


def _sample(
    trigger: TriggerSpec,
    facts: dict[str, Any],
    record: int | None,
    *,
    origin: str,
    rule_id: int | None,
    remarks: tuple[str, ...] = (),
) -> Sample:
    """An event of the kind that the rule listens to, from a source that it accepts."""
    source = "person" if not trigger.sources or "person" in trigger.sources else min(trigger.sources)
    if trigger.on and not facts["change"]:
        facts["outcomes"] = [_outcome(trigger, facts["data"])]
    return Sample(
        origin=origin,
        kind=trigger.kind,
        model=trigger.model,
        record=record,
        facts={**facts, "source": source},
        change=facts["change"],
        name=str(rule_id or "") if trigger.kind == "manual" else trigger.name,
        source=source,
        remarks=remarks,
    )
