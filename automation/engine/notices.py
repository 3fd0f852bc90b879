"""Says whom to tell what, once per subject and period, in everybody's own language."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Q
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.core.alike import pattern
from automation.core.breaker import FAILED_RUNS
from automation.engine import site
from automation.models import Notice, Rule
from automation.store.pauses import bump_rules_of
from automation.store.timers import set_timers
from automation.store.waves import NewNotice, Wave
from tenants.context import acting_for
from tenants.models import Membership, Tenant
from tenants.roles import Role

DEAD_LETTER, RULE_HELD, RULE_OFF, EVENT_SET_ASIDE = "dead_letter", "rule_held", "rule_off", "event_set_aside"
OWNER_GONE, BULK_STOPPED = "owner_gone", "bulk_stopped"
GONE, NAMED = "gone", 20  # the period of an owner who is gone, until he comes back; so many rules a notice names
CONNECTION_DOWN, CONNECTION_OFF, LIMIT = "connection_down", "connection_off", "limit"
TITLE, ERROR_SHOWN = 200, 2000
USED_UP = 100  # percent


class About(NamedTuple):
    """The rule that a notice is about."""

    tenant_id: int
    rule_id: int
    rule_name: str


def dead_letter_notice(
    *,
    tenant_id: int,
    rule_id: int,
    rule_name: str,
    run_id: int | None,
    step_path: str,
    reason: str,
    error: str,
    now: datetime,
) -> NewNotice:
    """Tells that a step failed for good: one notice per rule and error in an hour, further cases are only counted.

    Without an owner or admin who has a mail address it has no recipients, and is seen in the product only.
    """
    about = About(tenant_id, rule_id, rule_name)
    alike = hashlib.sha256(f"{step_path}|{reason}|{pattern(error)}".encode()).hexdigest()[:16]

    def words() -> tuple[str, str]:
        title = _("“%(rule)s”: a step failed for good") % {"rule": rule_name}
        text = _(
            "The step “%(step)s” of the rule “%(rule)s” failed for good in run %(run)s and waits for a person.\n\n"
            "Reason: %(reason)s\nError: %(error)s\n\n"
            "Open the run to see each attempt, and to retry it or to give it up."
        ) % {"step": step_path, "rule": rule_name, "run": run_id, "reason": reason, "error": error[:ERROR_SHOWN]}
        return title, "\n".join(filter(None, [text, site.page("run", _tenant(tenant_id).slug, run_id)]))

    return _notice(DEAD_LETTER, about, subject=f"rule:{rule_id}:{alike}", period=hour(now), words=words)


def rule_held_notice(*, tenant_id: int, rule_id: int, rule_name: str, reason: str, now: datetime) -> NewNotice:
    """Tells that the engine itself holds a rule, as it does for one that runs too often: once a day per rule."""
    about = About(tenant_id, rule_id, rule_name)

    def words() -> tuple[str, str]:
        title = _("“%(rule)s” is held") % {"rule": rule_name}
        text = _(
            "The rule “%(rule)s” was held by the engine (%(reason)s): it ran too often on one record, as a loop does."
            "\n\n"
            "Its events are kept and nothing of it runs until someone resumes it, or switches it off and on."
        ) % {"rule": rule_name, "reason": reason}
        return title, text

    return _notice(RULE_HELD, about, subject=f"rule:{rule_id}:{reason}", period=day(now), words=words)


def rule_off_notice(
    *, tenant_id: int, rule_id: int, rule_name: str, reason: str, problems: Callable[[], Sequence[str]], now: datetime
) -> NewNotice:
    """Tells that a rule was switched off by the engine, because something that it uses is gone: once a day per rule.

    `problems` are said in the language of the moment.
    """
    about = About(tenant_id, rule_id, rule_name)

    def words() -> tuple[str, str]:
        title = _("“%(rule)s” was switched off") % {"rule": rule_name}
        text = _(
            "The rule “%(rule)s” was switched off (%(reason)s), because something that it uses is gone:\n\n%(problems)s"
        ) % {"rule": rule_name, "reason": reason, "problems": "\n".join(problems())[:ERROR_SHOWN]}
        return title, text

    return _notice(RULE_OFF, about, subject=f"rule:{rule_id}:{reason}", period=day(now), words=words)


def owner_gone_notice(rules: Sequence[Rule], *, subject: str) -> NewNotice | None:
    """Tells the tenant's admins that nobody looks after these rules any more; None where they know of the subject."""
    about = About(rules[0].tenant_id, 0, "")
    with acting_for(about.tenant_id):
        if Notice.objects.filter(kind=OWNER_GONE, subject=subject, period=GONE).exists():
            return None

    def words() -> tuple[str, str]:
        names = [f"“{rule.name}”" for rule in rules[:NAMED]] + (["…"] if len(rules) > NAMED else [])
        title = ngettext("%(names)s has lost its owner", "%(n)d rules have lost their owner", len(rules))
        text = _(
            "Nobody owns these rules any more:\n\n%(names)s\n\nThey and their runs go on as before, and what goes "
            "wrong is told to the admins alone. Give them to somebody else to have them looked after."
        )
        places = {"names": names[0], "n": len(rules)}
        return title % places, text % {"names": "\n".join(names)}

    return _notice(OWNER_GONE, about, subject=subject, period=GONE, words=words)


def rule_failing_notice(*, tenant_id: int, rule_id: int, rule_name: str, now: datetime) -> NewNotice:
    """Tells that a rule was switched off because its runs failed one after the other: once a day per rule."""
    about = About(tenant_id, rule_id, rule_name)

    def words() -> tuple[str, str]:
        title = _("“%(rule)s” was switched off") % {"rule": rule_name}
        text = _(
            "The rule “%(rule)s” was switched off: its last %(runs)d runs failed, each for another record.\n\n"
            "Its waiting runs are held. Look at its failed runs, mend what is wrong, and switch it on again."
        ) % {"rule": rule_name, "runs": FAILED_RUNS}
        return title, text

    return _notice(RULE_OFF, about, subject=f"rule:{rule_id}:failing", period=day(now), words=words)


def limit_notice(*, tenant_id: int, limit: str, percent: int, words: Callable[[], str], now: datetime) -> NewNotice:
    """Tells the tenant's admins that a limit is nearly or wholly used up; `words` say of what how much, translated."""

    def both() -> tuple[str, str]:
        used_up = _("A limit is reached") if percent >= USED_UP else _("A limit is nearly reached")
        return used_up, words()

    return _notice(LIMIT, About(tenant_id, 0, ""), subject=f"{limit}:{percent}", period=day(now), words=both)


def connection_down_notice(*, tenant_id: int, connection: str, error: str, now: datetime) -> NewNotice:
    """Tells the tenant's admins that an outside system doesn't answer: once a day for each connection."""

    def words() -> tuple[str, str]:
        title = _("The connection “%(connection)s” is down") % {"connection": connection}
        text = _(
            "Calls of the connection “%(connection)s” fail. Its steps wait, use up no attempt, and go on by themselves "
            "as soon as it answers again.\n\nLast error: %(error)s"
        ) % {"connection": connection, "error": error[:ERROR_SHOWN]}
        return title, text

    about = About(tenant_id, 0, "")
    return _notice(CONNECTION_DOWN, about, subject=f"connection:{connection}", period=day(now), words=words)


def connection_off_notice(*, tenant_id: int, connection: str, error: str, now: datetime) -> NewNotice:
    """Tells the tenant's admins that a connection isn't tried any more, after a day without a success."""

    def words() -> tuple[str, str]:
        title = _("The connection “%(connection)s” was switched off") % {"connection": connection}
        text = _(
            "The connection “%(connection)s” has not answered for a day and isn't tried any more. Its steps wait until "
            "somebody switches it on again.\n\nLast error: %(error)s"
        ) % {"connection": connection, "error": error[:ERROR_SHOWN]}
        return title, text

    about = About(tenant_id, 0, "")
    return _notice(CONNECTION_OFF, about, subject=f"connection:{connection}", period=day(now), words=words)


def bulk_stopped_notice(
    *, tenant_id: int, job_id: int, rule_id: int | None, failed_again: int, now: datetime
) -> NewNotice:
    """Tells that a job on many dead letters has stopped, because too many failed again."""

    def words() -> tuple[str, str]:
        title = _("A retry of many dead letters has stopped")
        text = _(
            "Job %(job)s has stopped by itself: %(count)s of those tried again have failed once more.\n\n"
            "What nobody had begun is back among the dead letters. See what the newest of them say, mend it, and start "
            "another job."
        ) % {"job": job_id, "count": failed_again}
        return title, text

    about = About(tenant_id, rule_id or 0, "")
    return _notice(BULK_STOPPED, about, subject=f"bulk:{job_id}", period=day(now), words=words)


def event_set_aside_notice(*, tenant_id: int, event_id: int, error: str, now: datetime) -> NewNotice:
    """Tells the tenant's admins that an event was set aside because judging it ended its worker again and again."""
    about = About(tenant_id, 0, "")

    def words() -> tuple[str, str]:
        title = _("Event %(event)s was set aside") % {"event": event_id}
        text = _(
            "Matching event %(event)s failed again and again, so it was set aside and waits for a person.\n\n"
            "Error: %(error)s"
        ) % {"event": event_id, "error": error[:ERROR_SHOWN]}
        return title, text

    return _notice(EVENT_SET_ASIDE, about, subject="poison", period=hour(now), words=words)


def tell(notices: Sequence[NewNotice], *, changed: Collection[int] = ()) -> None:
    """Writes notices and their deliveries in the caller's transaction; its last locks.

    `changed` are the tenants whose rules workers read anew: all lanes are locked in one order.
    """
    wave = Wave(notices=list(notices))
    wave.write()
    if changed:
        bump_rules_of(changed, told=[timer.tenant_id for timer in wave.timers])
    set_timers(wave.timers)


def hour(now: datetime) -> str:
    """The period of a dead letter: the hour, in UTC."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H")


def day(now: datetime) -> str:
    """The period of every other notice: the day, in UTC."""
    return now.astimezone(UTC).strftime("%Y-%m-%d")


def _notice(kind: str, about: About, *, subject: str, period: str, words: Callable[[], tuple[str, str]]) -> NewNotice:
    """The notice, in the tenant's language and those of whom it goes to; one of this period already is only counted."""
    with acting_for(about.tenant_id):
        if Notice.objects.filter(kind=kind, subject=subject, period=period).exists():
            return NewNotice(about.tenant_id, kind, subject, period, "", "", [])
    tenant, told = _tenant(about.tenant_id), _told(about.tenant_id, about.rule_id)
    languages = {tenant.language, *(language for _address, language in told)} - {""}
    said = {language: _said(words, language) for language in sorted(languages)}
    title, text = said.pop(tenant.language)
    return NewNotice(
        about.tenant_id,
        kind,
        subject,
        period,
        title,
        text,
        sorted({address for address, _language in told} - {""}),
        said,
    )


def _said(words: Callable[[], tuple[str, str]], language: str) -> tuple[str, str]:
    with translation.override(language):
        title, text = words()
    return title[:TITLE], text


def _told(tenant_id: int, rule_id: int) -> list[tuple[str, str]]:
    """(address, language) of the rule's owner, while he belongs to the tenant, and of its admins.

    Without an address ("") people read it in the product; without a language ("") in the tenant's.
    """
    with acting_for(tenant_id):
        owner_id = Rule.objects.filter(pk=rule_id).values_list("owner_id", flat=True).first()
        people = Membership.objects.filter(is_active=True, user__is_active=True)
        found = people.filter(Q(role=Role.ADMIN) | Q(user_id=owner_id or 0)).order_by("pk")
        return list(found.values_list("user__email", "language"))


def _tenant(tenant_id: int) -> Tenant:
    return Tenant.objects.only("name", "slug", "language").get(pk=tenant_id)
