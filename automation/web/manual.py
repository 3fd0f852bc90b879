"""The page on which a person starts a rule by hand on a record."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.facts import clean
from automation.engine import labels, posting
from automation.engine.operate import Refused
from automation.models import Rule
from automation.web import cursor
from automation.web.lookup import find_rule
from tenants.middleware import TenantRequest
from tenants.permissions import needs

OFFERED = 20  # records listed; a search finds the others


@require_http_methods(["GET", "POST"])
@needs("agent")
def by_hand(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Offers the newest records that the rule fits, or those that a search finds; a POST starts it on one."""
    rule = find_rule(rule_id)
    entry = _model_of(rule)
    if request.method == "GET":
        return _offer(request, rule, entry)
    record = entry.model._default_manager.filter(pk=cursor.number(request.POST.get("record"))).first()
    if record is None:
        return _offer(request, rule, entry, problem=_("Choose a record that still exists."))
    try:
        posting.run_by_hand(rule.pk, record)
    except Refused as refusal:
        return _offer(request, rule, entry, problem=str(refusal))
    said = _("“%(rule)s” was started on %(record)s. Its run appears here in a moment.")
    messages.success(request, said % {"rule": rule.name, "record": labels.label(entry.name, record.pk)})
    address = redirect("automation:runs", tenant_slug)
    address["Location"] += f"?rule={rule.pk}"
    return address


def _model_of(rule: Rule) -> Automatable:
    """What the rule is for; Http404 for a rule that isn't started by hand."""
    trigger = (rule.published.definition.get("trigger") if rule.published else None) or {}
    model = (trigger.get("params") or {}).get("model", "")
    if trigger.get("kind") != "manual" or model not in registry.models:
        raise Http404
    return registry.model(model)


def _offer(request: TenantRequest, rule: Rule, entry: Automatable, *, problem: str = "") -> HttpResponse:
    text = request.GET.get("q", "").strip()
    records: Any = entry.model._default_manager.order_by("-pk")
    if text:
        fits = Q(pk=cursor.number(text))
        if entry.name_field:
            fits |= Q(**{f"{entry.name_field}__icontains": clean(text)})
        records = records.filter(fits)
    keys = [(entry.name, pk) for pk in records.values_list("pk", flat=True)[:OFFERED]]
    named = labels.labels(keys)
    shown = {
        "rule": rule,
        "entry": entry,
        "records": [(key[1], named[key]) for key in keys],
        "limit": OFFERED,
        "q": text,
        "problem": problem,
        "chosen": request.POST.get("record", ""),
    }
    return render(request, "automation/rule_run.html", shown, status=422 if problem else 200)
