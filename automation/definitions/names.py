"""The names that templates of a rule may use, and templates checked against them."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from automation.catalog.automatable import Automatable
from automation.core import templating
from automation.core.facts import EVENT_PREFIX
from automation.definitions.scope import Scope

COMMON = ("tenant.name", "rule.name")
STEPS_PREFIX = "steps."
ANY = "*"
"""Ends a known name below which every name is known."""


def record_names(automatable: Automatable) -> dict[str, str]:
    """Template name of each readable field → its path: "ticket.customer.plan" → "customer.plan".

    A link that has readable fields of its own is a group of names; its number is then "ticket.assignee.id".
    """
    short = automatable.short_name
    names = {f"{short}.id": ""}
    for path in automatable.fields:
        has_names_below = any(other.startswith(f"{path}.") for other in automatable.fields)
        names[f"{short}.{path}.id" if has_names_below else f"{short}.{path}"] = path
    return names


class Names:
    """The names known at a place of a rule: of the record, the event, the tenant, the rule and of earlier steps."""

    def __init__(self, scope: Scope) -> None:
        """The names known at the first step."""
        self.scope = scope
        self.paths = {} if scope.automatable is None else record_names(scope.automatable)
        self.known = {*COMMON, *self.paths}
        if scope.has_data:
            self.known.add(EVENT_PREFIX + ANY)

    def add_step(self, step_id: str) -> None:
        """From here on the outputs of a step can be used."""
        self.known.add(f"{STEPS_PREFIX}{step_id}.{ANY}")

    def check(self, source: str, target: str) -> list[str]:
        """What is wrong with a template, in words; the fields and outputs that it names are noted as read."""
        if self.scope.automatable is None and not self.scope.has_no_record:
            return []
        used, problems = templating.check_names(source, frozenset(self.known), target=target)
        for name in used:
            path = self.paths.get(name)
            if path:
                self.scope.reads.add(path)
            elif name.startswith((EVENT_PREFIX, STEPS_PREFIX)):
                self.scope.reads.add(name)
        return [_WORDS[problem.code]() % {"name": problem.detail, "hint": problem.hint} for problem in problems]


_WORDS: dict[str, Callable[[], str]] = {
    "unknown_name": lambda: _("There is no value called “%(name)s”."),
    "several_values": lambda: _("“%(name)s” has several values; write one of them, such as “%(hint)s”."),
    "unknown_filter": lambda: _("There is no filter “%(name)s”."),
    "unknown_token": lambda: _("“%(name)s” is not a token of date formats."),
    "unreadable": lambda: _("The template can't be read: %(name)s"),
}
