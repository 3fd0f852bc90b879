"""Tries a rule out on an event, a record, a past run or own facts; nothing is sent or changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from automation.core.errors import DefinitionError
from automation.core.spec import RuleSpec
from automation.engine import samples
from automation.engine.operate import Refused
from automation.engine.samples import Sample
from automation.engine.trial import Options, definition_of, trial
from automation.engine.trial_report import StepTried, TrialReport
from automation.management.arguments import add_json, add_tenant, misused, row, write_json
from automation.management.naming import moment, readable_json, record_named, rule_named, tenant_named
from automation.models import Event, RuleVersion, Run
from tenants.context import acting_for

ABOUT = __doc__

ANSWERS = ("succeed", "fail", "timeout", "recorded")


class Command(BaseCommand):
    """`manage.py automation_trial --tenant acme "Ask the warehouse" --record helpdesk.ticket:12`."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Which rule, on what, and how."""
        parser.add_argument(
            "rule", nargs="?", help="its number or name; its draft is tried unless --number names a version"
        )
        add_tenant(parser)
        parser.add_argument("--number", type=row, help="of a version, in place of the draft")
        parser.add_argument("--definition", metavar="FILE", help="a definition in a file, in place of a rule's")
        on = parser.add_mutually_exclusive_group(required=True)
        on.add_argument("--event", type=row, metavar="ID", help="a stored event")
        on.add_argument("--run", type=row, metavar="ID", help="a past run's event, with what its steps put out")
        on.add_argument("--record", metavar="MODEL:ID", help="a record as it is now, such as helpdesk.ticket:12")
        on.add_argument("--facts", metavar="FILE", help="own facts as JSON")
        parser.add_argument(
            "--was", action="append", default=[], metavar="FIELD=JSON", help="with --record: a value before the change"
        )
        parser.add_argument("--waits", choices=("pass", "stay"), default="pass", help="whether time goes by")
        parser.add_argument("--at", metavar="WHEN", help="the moment of the test: 2026-03-02T09:00+01:00, or 2h")
        parser.add_argument(
            "--answer",
            action="append",
            default=[],
            metavar="STEP=HOW",
            help=f"how an outside step goes ({', '.join(ANSWERS)}); * for all others",
        )
        add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the report; exit code 0 whatever would happen, 1 where the test itself isn't possible."""
        tenant = tenant_named(options["tenant"])
        with acting_for(tenant.pk):
            try:
                report = self._report(options)
            except DefinitionError as error:
                raise CommandError("\n".join(str(problem) for problem in error.problems)) from error
            except (Event.DoesNotExist, Run.DoesNotExist) as error:
                what, number = ("run", options["run"]) if options["event"] is None else ("event", options["event"])
                raise CommandError(f"There is no {what} {number} of this tenant.") from error
            except RuleVersion.DoesNotExist as error:
                raise CommandError(f"The rule has no version {options['number']}.") from error
            except (Refused, LookupError, ValueError) as error:
                raise CommandError(str(error)) from error
        if options["json"]:
            write_json(self.stdout, report.to_json())
        else:
            self.stdout.write("\n".join(lines(report)))

    def _report(self, options: dict[str, Any]) -> TrialReport:
        if (options["rule"] is None) == (options["definition"] is None):
            raise misused("Name a rule, or give a --definition.")
        rule_id = rule_named(options["rule"]).pk if options["rule"] else None
        definition = (
            readable_json(Path(options["definition"])) if rule_id is None else definition_of(rule_id, options["number"])
        )
        how = Options(waits=options["waits"], at=moment(options["at"]), answers=_answers(options["answer"]))
        return trial(definition, _sample(options, rule_id), rule_id=rule_id, options=how)


def _sample(options: dict[str, Any], rule_id: int | None) -> Callable[[RuleSpec], Sample]:
    if options["event"] is not None:
        return lambda spec: samples.of_event(options["event"])
    if options["run"] is not None:
        return lambda spec: samples.of_run(options["run"])
    if options["facts"] is not None:
        given = readable_json(Path(options["facts"]))
        return lambda spec: samples.of_json(given, spec, rule_id=rule_id)
    model, number = record_named(options["record"])
    was = dict(_pairs(options["was"], "--was"))
    before = {name: _value(text) for name, text in was.items()}
    return lambda spec: samples.of_record(model, number, spec, rule_id=rule_id, was=before)


def _value(text: str) -> Any:
    """JSON where it is some, else the text itself: `normal` needs no quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _answers(given: list[str]) -> dict[str, Any]:
    answers = dict(_pairs(given, "--answer"))
    wrong = next((how for how in answers.values() if how not in ANSWERS), None)
    if wrong is not None:
        raise misused(f"A step goes as one of {', '.join(ANSWERS)}, not {wrong!r}.")
    return answers


def _pairs(given: list[str], option: str) -> Iterator[tuple[str, str]]:
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise misused(f"{option} {text!r} is no pair of a name and a value, joined by =.")
        yield name, value


def lines(report: TrialReport) -> Iterator[str]:
    """The report for people."""
    yield f"{report.rule}, tried on {report.origin} as of {report.at.isoformat(timespec='seconds')}"
    yield report.sentence
    for remark in report.remarks:
        yield f"  ! {remark}"
    if report.condition is not None:
        yield f"IF    {report.condition.result}"
        for leaf in report.condition.leaves:
            read = "" if leaf.result == "not_needed" else f"   read: {json.dumps(leaf.read, ensure_ascii=False)}"
            yield f"  {leaf.result:<11}{leaf.field} {leaf.op} {json.dumps(leaf.wanted, ensure_ascii=False)}{read}"
    for step in report.steps:
        yield from _step_lines(step)
    for change in report.changes:
        before, after = (json.dumps(one, ensure_ascii=False) for one in (change.before, change.after))
        yield f"would change {change.field}: {before} -> {after}"
    for follow in report.follows:
        if follow.rules:
            yield f"{follow.record} {follow.change} would start: {', '.join(follow.rules)}"
    yield f"Nothing was sent or changed. ({report.seconds} s)"


def _step_lines(step: StepTried) -> Iterator[str]:
    margin = "  " * (step.level + 1)
    why = f" ({step.reason or step.error})" if step.reason or step.error else ""
    until = f" until {step.until}" if step.until else ""
    yield f"{margin}{step.id}: {step.label or step.kind}: {step.state}{why}{until}"
    taken = next((arm.id for arm in step.arms if arm.taken), "otherwise" if step.arms else "")
    if taken and step.state == "succeeded":
        yield f"{margin}  goes on with: {taken}"
    for request in step.requests:
        yield f"{margin}  would send to {request.to}" + (f": {request.subject}" if request.subject else "")
        yield from (f"{margin}    {name}: {value}" for name, value in request.headers.items())
        yield from (f"{margin}    {line}" for line in request.body.splitlines())
