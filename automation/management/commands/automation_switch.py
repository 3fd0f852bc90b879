"""Switches a rule on or off, and says what becomes of its runs that are under way."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from automation.core.errors import DefinitionError
from automation.engine import rules
from automation.engine.operate.pause import find_pause
from automation.engine.operate.runs import Cancelled
from automation.management.arguments import add_reason, misused
from automation.management.naming import rule_named
from automation.management.verbs import VerbCommand
from automation.models import Rule

ABOUT = __doc__

BECOME = {"hold": "are held", "finish": "finish", "cancel": "are cancelled"}


class Command(VerbCommand):
    """`manage.py automation_switch off RULE --tenant acme --waiting cancel --reason "sends twice"`."""

    help = f"{ABOUT} {__doc__}"
    rehearsed = True

    def add_own(self, parser: CommandParser) -> None:
        """The verb, the rule, and what becomes of its runs."""
        parser.add_argument("verb", choices=("on", "off"), help="on also ends a pause of the rule")
        parser.add_argument("rule", help="its number or name")
        parser.add_argument(
            "--waiting",
            choices=rules.WAITING,
            help="off: its runs under way are held until it is on again (the default), finish, or are cancelled",
        )
        add_reason(parser)

    def act(self, options: dict[str, Any]) -> Any:
        """Answers the rule as it is afterwards, and what came of it."""
        rule, waiting = _asked(options)
        before = _as_it_is(rule)
        done = Cancelled()
        if options["verb"] == "on":
            _switch_on(rule, options["reason"])
        else:
            done = rules.switch_off(rule.pk, waiting=waiting, reason=options["reason"])
        rule.refresh_from_db()
        changed = _as_it_is(rule) != before or done != Cancelled()
        return _answer(rule, waiting, changed=changed) | {"cancelled": asdict(done)}

    def rehearse(self, options: dict[str, Any]) -> Any:
        """Answers how it would be; nothing is cancelled to be taken back, since that may be much."""
        rule, waiting = _asked(options)
        if options["verb"] == "on" or waiting != "cancel":
            return super().rehearse(options)
        answer = _answer(rule, waiting, changed=rule.on)
        return answer | {"on": False, "changed": rule.on or answer["runs"] > 0}

    def say(self, answer: Any) -> Iterable[str]:
        """How it is, and what becomes of runs under way."""
        already = "" if answer["changed"] else " (already so: nothing was changed)"
        yield f"Rule {answer['rule']} “{answer['name']}” is {'on' if answer['on'] else 'off'}{already}."
        if answer["on"]:
            yield f"Runs under way: {answer['runs']}; those that were held go on."
        else:
            yield f"Runs under way: {answer['runs']}; they {BECOME[answer['waiting']]}."
        done = answer.get("cancelled")
        if done and (done["ended"] or done["asked"]):
            yield f"Runs cancelled: {done['ended']}; asked their workers to end: {done['asked']}."


def _asked(options: dict[str, Any]) -> tuple[Rule, str]:
    """The rule, and what becomes of its runs."""
    if options["verb"] == "on" and options["waiting"]:
        raise misused("--waiting goes with off: a rule that is switched on lets its runs go on.")
    return rule_named(options["rule"]), options["waiting"] or "hold"


def _switch_on(rule: Rule, reason: str) -> None:
    try:
        rules.switch_on(rule.pk, reason)
    except DefinitionError as error:
        problems = "\n".join(map(str, error.problems))
        raise CommandError(f"It can't be switched on; mend and publish it first:\n{problems}") from error


def _as_it_is(rule: Rule) -> tuple[bool, str, bool]:
    return rule.on, "" if rule.on else rule.off_mode, find_pause("rule", rule.pk) is not None


def _answer(rule: Rule, waiting: str, *, changed: bool) -> dict[str, Any]:
    runs = rules.what_goes(rule.pk).runs
    return {"rule": rule.pk, "name": rule.name, "on": rule.on, "waiting": waiting, "changed": changed, "runs": runs}
