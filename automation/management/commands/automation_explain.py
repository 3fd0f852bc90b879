"""Says why a rule ran for the events of a record, or didn't."""

import json
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from automation.core.calendars import at_local
from automation.engine.answers import Answer, Explanation
from automation.engine.explain import LENGTH, explain, explain_event
from automation.engine.explain_json import answer_json, explanation_json
from automation.management.arguments import add_json, add_rule, add_tenant, at_least, misused, row, write_json
from automation.management.naming import record_named, rule_named, tenant_named
from automation.models import Event
from tenants.context import acting_for
from tenants.models import Tenant

ABOUT = __doc__

AROUND = timedelta(hours=1)
MOST = 10_000  # events that one answer holds


class Command(BaseCommand):
    """`automation_explain --tenant acme --rule 12 --record helpdesk.ticket:40 --at "2026-03-02 09:30"`.

    Or one event at all rules: `automation_explain --tenant acme --event 1234`.
    """

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, which record, and when; or which event."""
        add_tenant(parser)
        add_rule(parser, "this rule")
        parser.add_argument("--record", metavar="MODEL:ID", help="such as helpdesk.ticket:12")
        parser.add_argument("--event", type=row, metavar="NUMBER", help="one event, at every rule that listens")
        parser.add_argument("--at", metavar="TIME", help="what happened within an hour of it, in the tenant's zone")
        parser.add_argument("--since", metavar="TIME", help="from this time on")
        parser.add_argument("--until", metavar="TIME", help="up to this time")
        parser.add_argument("--after", type=row, default=0, metavar="EVENT", help="go on after this event")
        parser.add_argument(
            "--limit", type=at_least(1, most=MOST), default=LENGTH, help="events at most (default %(default)s)"
        )
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the answers; a bad argument is said in one line."""
        tenant = tenant_named(options["tenant"])
        with acting_for(tenant.pk):
            if options["event"] is not None:
                self._event(options)
            elif options["rule"] and options["record"]:
                self._record(tenant, options)
            else:
                raise misused("Name --rule and --record, or --event.")

    def _event(self, options: dict[str, Any]) -> None:
        try:
            answers = explain_event(options["event"])
        except Event.DoesNotExist as error:
            raise CommandError(f"There is no event {options['event']} of this tenant.") from error
        if options["json"]:
            write_json(self.stdout, {"answers": [answer_json(one) for one in answers]})
            return
        for answer in answers:
            self._line(f"{answer.rule_name} (rule {answer.rule_id})", answer)
        if not answers:
            self.stdout.write("No rule listens to such an event.")

    def _record(self, tenant: Tenant, options: dict[str, Any]) -> None:
        since, until = _times(tenant, options)
        model, record = record_named(options["record"])
        found = explain(
            rule_named(options["rule"], deleted=True).pk,
            model=model,
            record=record,
            since=since,
            until=until,
            after=options["after"],
            limit=options["limit"],
        )
        if options["json"]:
            write_json(self.stdout, explanation_json(found))
            return
        self._print(tenant, found)

    def _print(self, tenant: Tenant, found: Explanation) -> None:
        self.stdout.write(f"{found.rule.name} (rule {found.rule.pk}) and {found.record_label}: {found.sentence}")
        for answer in found.answers:
            at = answer.event.created_at.astimezone(tenant.zone)
            who = answer.event.actor or answer.event.source
            self._line(f"{at:%Y-%m-%d %H:%M:%S} event {answer.event.pk} ({_what(answer.event)} by {who})", answer)
        if found.earlier:
            self.stdout.write("There are earlier events: name a time with --since or --at.")
        if found.more:
            self.stdout.write(f"More events follow: --after {found.answers[-1].event.pk}")

    def _line(self, begins: str, answer: Answer) -> None:
        version = f" · version {answer.version}" if answer.version else ""
        doubt = "" if answer.agrees else " · NOT what is recorded"
        self.stdout.write(f"{begins}: {answer.gate}{version}{doubt}\n    {answer.sentence}")
        for one in answer.comparisons:
            mark = ">" if one.decided else " "
            self.stdout.write(f"  {mark} {one.result:10} {one.text} · read {json.dumps(one.read, ensure_ascii=False)}")


def _what(event: Event) -> str:
    if event.kind == "manual":
        return f"rule {event.name} started by hand"
    return event.change or event.name or event.kind


def _times(tenant: Tenant, options: dict[str, Any]) -> tuple[datetime | None, datetime | None]:
    at, since, until = (_time(tenant, name, options[name]) for name in ("at", "since", "until"))
    if at is not None:
        return since or at - AROUND, until or at + AROUND
    return since, until


def _time(tenant: Tenant, name: str, text: str | None) -> datetime | None:
    """A time as it was written, in the tenant's zone where it names none."""
    if text is None:
        return None
    try:
        moment = parse_datetime(text if len(text) > 10 else f"{text} 00:00")
    except ValueError:
        moment = None
    if moment is None:
        raise misused(f"--{name} is a time such as 2026-03-02 09:30.")
    return moment if moment.tzinfo else at_local(moment.date(), moment.time(), tenant.zone)
