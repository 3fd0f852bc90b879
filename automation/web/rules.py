"""The list of rules and the page of one: its sentence, switch, versions, and what can be done with it."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from automation.core.errors import DefinitionError
from automation.engine import rules as engine_rules
from automation.engine import sayings
from automation.engine.findings import findings_of
from automation.engine.operate import Refused, pause
from automation.models import Rule, RuleDraft, RuleVersion
from automation.web import examples, texts
from automation.web.forms import NameForm, ReasonForm, first_errors
from automation.web.lookup import find_rule, waiting_runs
from automation.web.rule_list import page_of
from tenants.middleware import TenantRequest
from tenants.permissions import needs

VERSIONS_SHOWN = 50


@require_http_methods(["GET", "POST"])
@needs("editor")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Asks for a name, and makes a rule that is off and has an empty draft."""
    errors: dict[str, Any] = {}
    if request.method == "POST":
        form = NameForm(request.POST)
        errors = first_errors(form)
        start = examples.example() if request.POST.get("start") == "example" else None
        if not errors:
            try:
                rule = engine_rules.create(form.cleaned_data["name"], definition=start)
            except Refused as refusal:
                errors = {"name": str(refusal)}
            else:
                return redirect("automation:rule_draft", tenant_slug, rule.pk)
    shown = {"errors": errors, "name": request.POST.get("name", ""), "start": request.POST.get("start", "example")}
    return render(request, "automation/rule_new.html", shown, status=422 if errors else 200)


@require_safe
@needs("viewer")
def rule(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Shows one rule: what it does in words, its switch, its versions, and what people of this role can do."""
    found = find_rule(rule_id)
    return render(request, "automation/rule.html", _shown(request, found.pk))


@require_safe
@needs("viewer")
def version(request: TenantRequest, tenant_slug: str, rule_id: int, number: int) -> HttpResponse:
    """Shows one published version."""
    found = find_rule(rule_id)
    shown = RuleVersion.objects.filter(rule=found, number=number).select_related("published_by").first()
    if shown is None:
        raise Http404
    return render(
        request,
        "automation/rule_version.html",
        {
            "rule": found,
            "version": shown,
            "text": texts.write(shown.definition),
            "sentence": sayings.sentence(shown.definition, sayings.Names()),
            "may_edit": request.membership.may("editor"),
        },
    )


@require_POST
@needs("editor")
def restore(request: TenantRequest, tenant_slug: str, rule_id: int, number: int) -> HttpResponse:
    """Makes a version the draft again; nothing that runs changes. Asks first where that drops unpublished changes."""
    found = find_rule(rule_id)
    draft = RuleDraft.objects.select_related("changed_by").get(rule=found)
    unpublished = found.published is not None and found.published.definition != draft.definition
    if unpublished and request.POST.get("replace") != "yes":
        return render(request, "automation/rule_restore.html", {"rule": found, "draft": draft, "number": number})
    try:
        engine_rules.restore(found.pk, number)
    except RuleVersion.DoesNotExist as missing:
        raise Http404 from missing
    messages.success(request, _("Version %(n)d is the draft now. It goes live when it is published.") % {"n": number})
    return redirect("automation:rule_draft", tenant_slug, found.pk)


@require_POST
@needs("editor")
def rename(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Gives the rule another name."""
    found = find_rule(rule_id)
    form = NameForm(request.POST)
    errors = first_errors(form)
    if not errors:
        engine_rules.rename(found.pk, form.cleaned_data["name"])
        messages.success(request, _("The rule has its new name."))
        return redirect("automation:rule", tenant_slug, found.pk)
    shown = {**_shown(request, found.pk), "errors": errors, "typed_name": request.POST.get("name", "")}
    return render(request, "automation/rule.html", shown, status=422)


@require_POST
@needs("publisher")
def move(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Moves a rule up or down by one place."""
    found = find_rule(rule_id)
    way = request.POST.get("to", "")
    step = {"up": -1, "down": 1}.get(way)
    if step is None:
        said = _("A rule moves “up” or “down”. Nothing was moved.")
        return render(request, "automation/rule.html", {**_shown(request, found.pk), "refused": said}, status=422)
    present = Rule.objects.filter(deleted_at=None).order_by("position", "id")
    place = list(present.values_list("pk", flat=True)).index(found.pk) + 1
    if place + step >= 1:
        engine_rules.move(found.pk, position=place + step)
        messages.success(request, _("“%(name)s” has moved.") % {"name": found.name})
        place += step
    return redirect(f"{reverse('automation:rules', args=[tenant_slug])}?page={page_of(place)}#{way}-{found.pk}")


@require_POST
@needs("publisher")
def switch_on(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Lets the published version run."""
    found = find_rule(rule_id)
    try:
        engine_rules.switch_on(found.pk)
    except Refused as refusal:
        messages.error(request, str(refusal))
    except DefinitionError as broken:
        said = _("“%(name)s” can't be switched on: %(problems)s")
        problems = "; ".join(problem.message for problem in broken.problems)
        messages.error(request, said % {"name": found.name, "problems": problems})
    else:
        messages.success(request, _("“%(name)s” is on.") % {"name": found.name})
    return _back(request, tenant_slug, found.pk)


@require_http_methods(["GET", "POST"])
@needs("publisher")
def switch_off(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Asks what becomes of the runs that wait, with their number, and switches the rule off."""
    found = find_rule(rule_id)
    waiting = request.POST.get("waiting", "hold")
    if request.method == "POST" and waiting in engine_rules.WAITING:
        engine_rules.switch_off(found.pk, waiting=waiting)
        messages.success(request, _("“%(name)s” is off.") % {"name": found.name})
        return redirect("automation:rule", tenant_slug, found.pk)
    shown = {"rule": found, "runs": waiting_runs(found), "waiting": "hold"}
    return render(request, "automation/rule_off.html", shown)


@require_http_methods(["GET", "POST"])
@needs("publisher")
def delete(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Asks for the rule's name, with what will be cancelled, and deletes it."""
    found = find_rule(rule_id)
    errors: dict[str, Any] = {}
    if request.method == "POST":
        typed = " ".join(request.POST.get("name", "").split())
        if typed == " ".join(found.name.split()):
            engine_rules.delete(found.pk)
            messages.success(request, _("“%(name)s” is deleted.") % {"name": found.name})
            return redirect("automation:rules", tenant_slug)
        errors = {"name": _("That is not the rule's name. Nothing was deleted.")}
    shown = {"rule": found, "runs": waiting_runs(found), "errors": errors, "name": request.POST.get("name", "")}
    return render(request, "automation/rule_delete.html", shown, status=422 if errors else 200)


@require_POST
@needs("publisher")
def undelete(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Brings a deleted rule back, switched off."""
    try:
        engine_rules.undelete(rule_id)
    except Rule.DoesNotExist as missing:
        raise Http404 from missing
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("automation:rules", tenant_slug)
    messages.success(request, _("The rule is back, switched off."))
    return redirect("automation:rule", tenant_slug, rule_id)


@require_POST
@needs("publisher")
def hold(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Pauses one rule: it keeps its runs, which wait."""
    found = find_rule(rule_id)
    form = ReasonForm(request.POST)
    if form.is_valid():
        pause.pause_rule(found.pk, form.cleaned_data["reason"])
        messages.success(request, _("“%(name)s” is paused. Its runs are kept and wait.") % {"name": found.name})
        return redirect("automation:rule", tenant_slug, found.pk)
    shown = {**_shown(request, found.pk), "errors": first_errors(form), "typed_reason": request.POST.get("reason", "")}
    return render(request, "automation/rule.html", shown, status=422)


@require_POST
@needs("publisher")
def go_on(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Ends the pause of one rule."""
    found = find_rule(rule_id)
    if pause.open_pause(found.pk) is None and pause.dripping("rule", found.pk) is None:
        messages.info(request, _("“%(name)s” isn't paused.") % {"name": found.name})
        return redirect("automation:rule", tenant_slug, found.pk)
    pause.resume_rule(found.pk)
    messages.success(request, _("“%(name)s” runs again. What was held is done now.") % {"name": found.name})
    return redirect("automation:rule", tenant_slug, found.pk)


def _back(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """To the list where the button was pressed there, else to the rule."""
    if request.POST.get("from") == "list":
        return redirect("automation:rules", tenant_slug)
    return redirect("automation:rule", tenant_slug, rule_id)


def _shown(request: TenantRequest, rule_id: int) -> dict[str, Any]:
    """Everything that the page of one rule shows."""
    found = find_rule(rule_id)
    stopped, held = pause.open_pause(found.pk), pause.held_by("rule", found.pk)
    draft = RuleDraft.objects.select_related("changed_by").get(rule=found)
    live = found.published
    definition = live.definition if live else draft.definition
    problems = engine_rules.check(definition)
    trigger = definition.get("trigger")
    versions = RuleVersion.objects.filter(rule=found).select_related("published_by").order_by("-number")
    return {
        "rule": found,
        "draft": draft,
        "live": live,
        "unpublished": live is None or live.definition != draft.definition,
        "problems": problems,
        "findings": [] if problems else findings_of(found.pk, definition),
        "sentence": sayings.sentence(definition, sayings.Names()),
        "text": texts.write(definition),
        "is_manual": live is not None and isinstance(trigger, dict) and trigger.get("kind") == "manual",
        "pause": stopped,
        "held": sum(one.steps for one in held),
        "dripping": pause.dripping("rule", found.pk),
        "runs": waiting_runs(found),
        "versions": versions.defer("definition")[:VERSIONS_SHOWN],
        "may_edit": request.membership.may("editor"),
        "may_publish": request.membership.may("publisher"),
        "may_run": request.membership.may("agent"),
    }
