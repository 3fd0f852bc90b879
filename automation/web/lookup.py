"""Finds what a page is about; another tenant's answers exactly like what never existed."""

from django.http import Http404

from automation.core.states import TERMINAL_RUN
from automation.engine import rules as engine_rules
from automation.models import Rule, Run

COUNTED = 1000


def find_rule(rule_id: int) -> Rule:
    """The rule with its published version; Http404 for one that is deleted, another tenant's, or never was."""
    try:
        return engine_rules.find(rule_id)
    except Rule.DoesNotExist as missing:
        raise Http404 from missing


def waiting_runs(rule: Rule) -> int:
    """How many runs of the rule haven't ended, counted to `COUNTED`."""
    return Run.objects.filter(rule=rule).exclude(state__in=TERMINAL_RUN).values("pk")[:COUNTED].count()
