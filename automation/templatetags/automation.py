"""Tags and filters of the pages: icons, words of state, times in the tenant's zone, values, and the tenant's bar."""

import json
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django import template
from django.template.context import Context
from django.templatetags.static import static
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, ngettext

from automation.engine.operate import pause
from automation.models import DeadLetter, Notice, Pause, Rule
from automation.templatetags import words

register = template.Library()

COUNTED_TO = 1000  # a count beyond is shown as "999+": counting further costs, and tells nobody more
SHOWN_CHARACTERS = 4000
ONE_LINE = 70  # characters of JSON that need no lines of their own
NOTHING = "\N{EN DASH}"


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of the sprite, hidden from screen readers: there is always a word beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("automation/icons.svg"),
        name,
    )


@register.simple_tag
def said_in(notice: Notice, language: str) -> tuple[str, str]:
    """(title, text) of a notice in somebody's language."""
    return notice.said_in(language)


def _pill(word: words.Word) -> SafeString:
    return format_html('<span class="status status-{}">{}{}</span>', word.tone, icon(word.icon), word.text)


@register.simple_tag
def run_status(state: str, reason: str = "") -> SafeString:
    """The state of a run as icon, word and colour."""
    return _pill(words.run_word(state, reason))


@register.simple_tag
def step_status(state: str, reason: str = "") -> SafeString:
    """The state of a step as icon, word and colour."""
    return _pill(words.step_word(state, reason))


@register.simple_tag
def attempt_status(outcome: str) -> SafeString:
    """The outcome of an attempt as icon, word and colour; an open one is running."""
    return _pill(words.ATTEMPT_WORDS.get(outcome, words.UNKNOWN))


@register.simple_tag
def result_status(result: str) -> SafeString:
    """The result of a condition as icon, word and colour."""
    return _pill(words.RESULT_WORDS.get(result, words.UNKNOWN))


@register.simple_tag
def change_status(kind: str) -> SafeString:
    """The kind of a change between two definitions as icon, word and colour."""
    return _pill(words.CHANGE_WORDS.get(kind, words.UNKNOWN))


@register.simple_tag
def rule_switch(rule: Rule, paused: Pause | None = None) -> SafeString:
    """Whether a rule is on, off, or held by a pause of its own, as icon, word and colour."""
    if paused is not None and rule.on:
        return _pill(words.RULE_HELD)
    return _pill(words.RULE_ON if rule.on else words.RULE_OFF)


@register.filter
def run_state_word(state: str) -> str:
    """The plain word for a run's state, for a choice in a filter."""
    return str(words.run_word(state).text)


@register.filter
def reason_words(reason: str) -> str:
    """A reason code in plain words; an unknown one as it is."""
    return str(words.REASON_WORDS.get(reason, reason))


def _zone(context: Context) -> tzinfo:
    """The tenant's zone, UTC on pages outside of any tenant."""
    tenant = getattr(context.get("request"), "tenant", None)
    return tenant.zone if tenant is not None else UTC


@register.simple_tag(takes_context=True)
def moment(context: Context, value: datetime | None, empty: str = NOTHING) -> SafeString | str:
    """A moment in the tenant's zone, to the second; the year where it isn't the present one."""
    if value is None:
        return empty
    zone = _zone(context)
    local = value.astimezone(zone)
    shown = "j M, H:i:s" if local.year == timezone.now().astimezone(zone).year else "j M Y, H:i:s"
    return format_html('<time datetime="{}">{}</time>', local.isoformat(), formats.date_format(local, shown))


@register.simple_tag(takes_context=True)
def ago(context: Context, value: datetime | None, empty: str = NOTHING) -> SafeString | str:
    """How long ago or until, with the moment itself in the line below."""
    if value is None:
        return empty
    return format_html('{} <span class="sub">{}</span>', since(value), moment(context, value))


@register.simple_tag
def since(value: datetime | None) -> str:
    """How long ago or until, in words; empty for no moment."""
    if value is None:
        return ""
    now = timezone.now()
    if value > now:
        return gettext("in %(span)s") % {"span": timeuntil(value, now, depth=1)}
    if now - value < timedelta(minutes=1):
        return gettext("just now")
    return gettext("%(span)s ago") % {"span": timesince(value, now, depth=1)}


@register.simple_tag(takes_context=True)
def clock(context: Context, value: datetime) -> str:
    """The time of day in the tenant's zone."""
    return str(formats.date_format(value.astimezone(_zone(context)), "H:i:s"))


@register.simple_tag
def took(start: datetime | None, end: datetime | None) -> str:
    """How long something took, in the unit that suits it; empty while it isn't over."""
    if start is None or end is None:
        return ""
    seconds = max((end - start).total_seconds(), 0.0)
    if seconds < 1:
        return gettext("%(n)d ms") % {"n": round(seconds * 1000)}
    if seconds < 60:
        return gettext("%(n).1f s") % {"n": seconds}
    return str(timesince(start, end, depth=2))


@register.filter
def seconds_words(value: float | timedelta | None) -> str:
    """A length of time in words."""
    if value is None:
        return ""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 120:
        return ngettext("%(n)d second", "%(n)d seconds", round(seconds)) % {"n": round(seconds)}
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return str(timesince(start, start + timedelta(seconds=seconds), depth=2))


@register.filter
def without_answer(output: dict[str, Any]) -> dict[str, Any]:
    """A step's output without the beginning of what another system answered."""
    return {name: value for name, value in output.items() if name != "answer"}


@register.filter
def pretty(value: Any) -> str:
    """A value as JSON for a box of its own: short ones in one line, very long ones cut, and it says so."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > ONE_LINE:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return gettext("%(text)s … (cut: %(n)d characters in all)") % {"text": text[:SHOWN_CHARACTERS], "n": len(text)}


@register.filter
def fact(value: Any) -> str:
    """A value of a record as people read it: "empty" for none, lists with commas, everything else as it is."""
    if value is None or value == "" or value == []:
        return gettext("empty")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(fact(part) for part in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


@register.filter
def verb_words(verb: str) -> str:
    """What a person did to a run, in plain words; an unknown verb as it is."""
    return str(words.VERB_WORDS.get(verb, verb))


@register.filter
def leaf_reason_words(reason: str) -> str:
    """Why a comparison couldn't be judged, or only in part, in plain words."""
    return str(words.LEAF_REASON_WORDS.get(reason, reason))


@register.filter
def reading(value: Any) -> str:
    """What a comparison read: a value, or what it was before and after."""
    if isinstance(value, dict) and set(value) == {"before", "after"}:
        return gettext("%(old)s → %(new)s") % {"old": fact(value["before"]), "new": fact(value["after"])}
    return fact(value)


@register.filter
def item(mapping: Any, key: Any) -> Any:
    """One value of a mapping by a key that the template only knows by name; None where there is none."""
    return mapping.get(key) if hasattr(mapping, "get") else None


@register.filter
def capped(number: int) -> str:
    """A count that was not counted past a thousand."""
    return f"{COUNTED_TO - 1}+" if number >= COUNTED_TO else str(number)


@register.inclusion_tag("automation/_nav.html", takes_context=True)
def tenant_nav(context: Context) -> dict[str, Any]:
    """The links of a tenant's pages, with the number of dead letters that wait for a person."""
    request = context["request"]
    waiting = DeadLetter.objects.filter(resolved_at=None).values("pk")[:COUNTED_TO].count()
    here = request.resolver_match.url_name if request.resolver_match else ""
    return {"tenant": request.tenant, "membership": request.membership, "dead_letters": waiting, "here": here}


@register.inclusion_tag("automation/_pause_banner.html", takes_context=True)
def pause_banner(context: Context) -> dict[str, Any]:
    """The banner that every page of a tenant shows while its automations are paused."""
    request = context["request"]
    status = pause.status() if pause.over_tenant() is not None else None
    return {"request": request, "tenant": request.tenant, "membership": request.membership, "status": status}
