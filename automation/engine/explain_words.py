"""The sentences that say why a rule didn't run: one whole message for each gate."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.catalog import registry
from automation.core.gates import Gate
from automation.core.spec import TriggerSpec
from automation.engine.answers import Answer, Comparison
from automation.engine.rule_history import RuleState
from automation.models import Event, Pause, Rule, Run

SHOWN = 3  # comparisons named in a sentence
LONGEST = 60


def stopped(gate: Gate, event: Event, *, state: RuleState, trigger: TriggerSpec | None, zone: ZoneInfo) -> str:
    """Why a rule that was in that state, with that trigger, was no match for an event; its condition apart."""
    if gate in (Gate.NOT_MADE, Gate.UNPUBLISHED, Gate.BROKEN):
        return _plain(gate)
    if gate in (Gate.OFF, Gate.DELETED):
        return _switched(gate, state, zone)
    return _not_heard(gate, event, trigger)


def condition_failed(deciding: Sequence[Comparison]) -> str:
    """Which comparisons kept the condition from holding, with what was read."""
    said = "; ".join(_comparison(one) for one in deciding[:SHOWN])
    if len(deciding) > SHOWN:
        said = _("%(some)s; and %(count)d more") % {"some": said, "count": len(deciding) - SHOWN}
    return _("Its condition did not hold: %(comparisons)s.") % {"comparisons": said}


def set_aside() -> str:
    """For an event that nothing judged."""
    return _("The event was set aside, because judging it ended its workers: it waits among the dead letters.")


def dropped(pause: Pause, *, zone: ZoneInfo) -> str:
    """For an event that was kept by a pause and dropped at its end."""
    names = {"who": pause.ended_by or pause.actor, "when": moment(pause.resumed_at or pause.since, zone)}
    return _("A pause kept the event, and %(who)s dropped it when it ended on %(when)s.") % names


def quiet(batch: str) -> str:
    """For an event of an import that no rule runs for."""
    return _("The change came by the import “%(batch)s”, which said that no rule runs for it.") % {"batch": batch}


def forgotten() -> str:
    """For an event whose facts are gone, so that nothing can be judged again."""
    return _(
        "What this change said has been removed since, as the tenant's retention says; no run of the rule is kept."
    )


def erased() -> str:
    """For an event that can't be judged again, since a person was erased from it."""
    return _("Whether it should have run can't be said any more: the values were erased.")


def unexplained() -> str:
    """For an event that should have started the rule by everything that is kept, and didn't."""
    return _(
        "By all that is recorded the rule should have run. Something was changed outside the product, or the rule was "
        "changed at about the moment when the event was matched."
    )


def closed() -> str:
    """For an event of a tenant that is closed."""
    return _("The tenant is closed: its events are kept and not matched.")


def waits(pause: Pause | None, before: int, *, zone: ZoneInfo) -> str:
    """For an event that no matcher has seen: what holds it, or how many come before it."""
    if pause is not None:
        names = {"who": pause.actor, "when": moment(pause.since, zone), "why": pause.reason}
        if pause.actor:
            return _("The event waits: %(who)s paused the automations on %(when)s (%(why)s).") % names
        return _("The event waits: the automations have been paused since %(when)s (%(why)s).") % names
    said = ngettext(
        "The event waits to be matched, with %(count)d event before it.",
        "The event waits to be matched, with %(count)d events before it.",
        before,
    )
    return said % {"count": before}


def ran(run: Run) -> str:
    """For a rule that did run."""
    names = {"run": run.pk, "state": run.state, "reason": run.reason}
    if run.reason:
        return _("It ran: run %(run)s is %(state)s (%(reason)s).") % names
    return _("It ran: run %(run)s is %(state)s.") % names


def summary(answers: Sequence[Answer]) -> str:
    """One sentence for all events: how many started the rule, and what stopped the last one that didn't."""
    started = sum(answer.ran for answer in answers)
    stopped_ones = [answer for answer in answers if not answer.ran]
    names: dict[str, Any] = {"count": len(answers), "started": started}
    if not stopped_ones:
        return ngettext("The event started the rule.", "All %(count)d events started the rule.", len(answers)) % names
    names["last"] = stopped_ones[-1].sentence
    if len(answers) == 1:
        return stopped_ones[-1].sentence
    return _("Of %(count)d events %(started)d started the rule. The last one that didn't: %(last)s") % names


def no_events(rule: Rule, model: str, record: int, since: datetime | None, until: datetime | None) -> str:
    """Why there is nothing to explain: what no event was written for starts no rule."""
    entry = registry.models.get(model)
    if entry is None or not entry.watched:
        return _("Changes of such records are no events, so no rule can start by them.")
    kept = Event.objects.filter(model=model, record=record)
    if (since is not None or until is not None) and kept.exists():
        return _("Nothing happened to the record in this time: there is no event of it. It has events at other times.")
    if not kept.exists():
        return _(
            "No event of this record is kept: nothing that rules watch has changed, its events are older than what is "
            "kept, or it was changed past the product."
        )
    return _("There are no further events of this record.")


def moment(at: datetime, zone: ZoneInfo) -> str:
    """A time for people, in the tenant's zone."""
    return formats.date_format(at.astimezone(zone), "DATETIME_FORMAT")


def value(raw: Any) -> str:
    """A raw value for people, cut where it is long."""
    if raw is None:
        return _("empty")
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _comparison(one: Comparison) -> str:
    names = {"comparison": one.text, "read": value(one.read)}
    if isinstance(one.read, dict) and one.read.keys() == {"before", "after"}:
        names |= {"before": value(one.read["before"]), "after": value(one.read["after"])}
        return _("“%(comparison)s” (it went from “%(before)s” to “%(after)s”)") % names
    if one.reason == "unchanged":
        return _("“%(comparison)s” (it did not change)") % names
    return _("“%(comparison)s” (it was “%(read)s”)") % names


def _plain(gate: Gate) -> str:
    return {
        Gate.NOT_MADE: _("The rule was made after the event was matched."),
        Gate.UNPUBLISHED: _("The rule had no published version when the event was matched."),
        Gate.BROKEN: _("The version that was live can't be read any more, so nobody can say what it listened to."),
    }[gate]


def _switched(gate: Gate, state: RuleState, zone: ZoneInfo) -> str:
    changed = state.changed
    if state.unaudited:
        return _("The rule is off or deleted, and not by what the audit knows: nobody can say since when, or by whom.")
    if changed is None or changed.verb == "publish":
        return _("The rule was off.") if gate is Gate.OFF else _("The rule was deleted.")
    names = {"who": changed.actor, "when": moment(changed.at, zone), "why": changed.reason}
    if gate is Gate.DELETED:
        return _("The rule was deleted on %(when)s by %(who)s.") % names
    if not changed.actor:
        return _("The rule was off: it was switched off by itself on %(when)s (%(why)s).") % names
    return _("The rule was off: %(who)s switched it off on %(when)s.") % names


def _not_heard(gate: Gate, event: Event, trigger: TriggerSpec | None) -> str:
    listens = trigger or TriggerSpec("", "")
    changed = event.facts.get("after") or {}
    names = {
        "model": _model(listens.model),
        "record": _model(event.model),
        "name": event.name,
        "wanted": listens.name,
        "change": event.change or _joined(event.facts.get("outcomes") or ()),
        "changes": _joined(sorted(listens.on)),
        "source": event.source,
        "sources": _joined(sorted(listens.sources)),
        "fields": _joined(_labels(event.model, sorted(listens.fields))),
        "changed": _joined(_labels(event.model, changed)),
    }
    return {
        Gate.KIND: _("The rule listens to another kind of event."),
        Gate.MODEL: _("The rule listens to a %(model)s, and this is a %(record)s."),
        Gate.NAME: _("The rule listens to the event “%(wanted)s”, and this one is called “%(name)s”."),
        Gate.OTHER_RULE: _("The event was made for another rule only."),
        Gate.CHANGE: _("What happened is “%(change)s”; the rule listens to: %(changes)s."),
        Gate.SOURCE: _("The change came by “%(source)s”; the rule listens to changes by: %(sources)s."),
        Gate.FIELDS: _("What changed was: %(changed)s. The rule listens to changes of: %(fields)s."),
    }[gate] % names


def _joined(words: Iterable[str]) -> str:
    return ", ".join(words) or _("nothing")


def _labels(model: str, paths: Iterable[str]) -> list[str]:
    entry = registry.models.get(model)
    fields = entry.fields if entry else {}
    return [fields[path].label if path in fields else path for path in paths]


def _model(name: str) -> str:
    entry = registry.models.get(name)
    return entry.label if entry else name or _("no record")
