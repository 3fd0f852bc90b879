"""The page on which a rule's draft is edited as JSON, and the one that publishes it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from automation.core.errors import DefinitionError, Problem
from automation.definitions.diff import Change, diff
from automation.engine import rules as engine_rules
from automation.engine import sayings
from automation.engine.findings import findings_of
from automation.engine.operate import Refused
from automation.models import Rule, RuleDraft
from automation.web import cursor, reference, texts
from automation.web.forms import PublishForm, first_errors
from automation.web.lookup import find_rule, waiting_runs
from tenants.middleware import TenantRequest
from tenants.permissions import needs


@dataclass(frozen=True, slots=True)
class PlacedProblem:
    """A problem of a definition with the line of the shown text on which it stands."""

    pointer: str
    message: str
    line: int


@require_http_methods(["GET", "POST"])
@needs("editor")
def draft(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Shows the draft with its problems; a POST saves it, valid or not, and loses nothing that was typed."""
    rule = find_rule(rule_id)
    saved = _draft_of(rule)
    if request.method == "GET":
        return _editor(request, rule, saved, text=texts.write(saved.definition))
    text = request.POST.get("definition", "").replace("\r\n", "\n")
    try:
        definition = texts.read(text)
    except texts.TextError as problem:
        return _editor(request, rule, saved, text=text, broken=problem, status=422)
    revision = cursor.number(request.POST.get("revision"))
    try:
        engine_rules.save_draft(rule.pk, definition, base_revision=-1 if revision is None else revision)
    except engine_rules.Conflict as conflict:
        return _conflict(request, rule, text=text, mine=definition, conflict=conflict)
    except Refused as refusal:
        return _editor(request, rule, saved, text=text, broken=texts.TextError(str(refusal)), status=422)
    _say_saved(request, definition)
    if "review" in request.POST:
        return redirect("automation:rule_publish", tenant_slug, rule.pk)
    return redirect("automation:rule_draft", tenant_slug, rule.pk)


@require_http_methods(["GET", "POST"])
@needs("publisher")
def publish(request: TenantRequest, tenant_slug: str, rule_id: int) -> HttpResponse:
    """Shows what would change for whom; a POST makes the draft the live version, if it is still the one looked at."""
    rule = find_rule(rule_id)
    if request.method == "GET":
        return _review(request, rule)
    form = PublishForm(request.POST)
    if not form.is_valid():
        return _review(request, rule, alert=" ".join(first_errors(form).values()), status=422)
    try:
        version = engine_rules.publish(rule.pk, **form.cleaned_data)
    except engine_rules.Conflict as conflict:
        return _review(request, rule, alert=_moved(conflict), status=409)
    except DefinitionError:
        return _review(request, rule, status=422)
    except engine_rules.NothingNew:
        messages.info(request, _("Nothing to publish: the draft is the same as the live version."))
    else:
        messages.success(
            request, _("Version %(n)d is live. Runs that wait finish on their own version.") % {"n": version.number}
        )
    return redirect("automation:rule", tenant_slug, rule.pk)


def _draft_of(rule: Rule) -> RuleDraft:
    return RuleDraft.objects.select_related("changed_by").get(rule=rule)


def _placed(problems: list[Problem], definition: Any) -> list[PlacedProblem]:
    lines = texts.lines(definition)
    return [PlacedProblem(each.pointer, each.message, texts.nearest(each.pointer, lines)) for each in problems]


def _editor(
    request: TenantRequest,
    rule: Rule,
    saved: RuleDraft,
    *,
    text: str,
    broken: texts.TextError | None = None,
    status: int = 200,
) -> HttpResponse:
    problems = [] if broken else _placed(engine_rules.check(saved.definition), saved.definition)
    shown = {
        "rule": rule,
        "draft": saved,
        "text": text,
        "base": texts.write(saved.definition),
        "revision": request.POST.get("revision", saved.revision) if broken else saved.revision,
        "broken": broken,
        "problems": problems,
        "reference": reference.catalog(),
        "may_publish": request.membership.may("publisher"),
    }
    return render(request, "automation/rule_draft.html", shown, status=status)


def _conflict(
    request: TenantRequest, rule: Rule, *, text: str, mine: dict[str, Any], conflict: engine_rules.Conflict
) -> HttpResponse:
    """What the other did, what was typed, and the choice between the two: neither is lost."""
    saved = _draft_of(rule)
    shown = {
        "rule": rule,
        "draft": saved,
        "conflict": conflict,
        "text": text,
        "base": texts.write(saved.definition),
        "theirs": _changes_from(request.POST.get("base", ""), saved.definition),
        "between": diff(saved.definition, mine),
    }
    return render(request, "automation/rule_conflict.html", shown, status=409)


def _changes_from(base: str, theirs: dict[str, Any]) -> list[Change] | None:
    """What changed between the draft as this person opened it and as it is now; None where that isn't known."""
    try:
        before = texts.read(base)
    except texts.TextError:
        return None
    return diff(before, theirs)


def _review(request: TenantRequest, rule: Rule, *, alert: str = "", status: int = 200) -> HttpResponse:
    saved = _draft_of(rule)
    live = rule.published
    problems = _placed(engine_rules.check(saved.definition), saved.definition)
    changes = diff(live.definition if live else {}, saved.definition) if live else []
    shown = {
        "rule": rule,
        "draft": saved,
        "live": live,
        "alert": alert,
        "problems": problems,
        "findings": [] if problems else findings_of(rule.pk, saved.definition),
        "changes": changes,
        "nothing_new": live is not None and live.definition == saved.definition,
        "unconditional": not saved.definition.get("condition"),
        "waiting": waiting_runs(rule),
        "note": request.POST.get("note", ""),
        "sentence": "" if problems else sayings.sentence(saved.definition, sayings.Names()),
    }
    return render(request, "automation/rule_publish.html", shown, status=status)


def _moved(conflict: engine_rules.Conflict) -> str:
    return _("%(who)s changed the draft meanwhile. Here is what would be published now: look at it again.") % {
        "who": conflict.changed_by or _("Somebody")
    }


def _say_saved(request: TenantRequest, definition: dict[str, Any]) -> None:
    found = len(engine_rules.check(definition))
    if found:
        said = ngettext(
            "The draft is saved. Before it can be published, %(n)d problem needs you.",
            "The draft is saved. Before it can be published, %(n)d problems need you.",
            found,
        )
        messages.warning(request, said % {"n": found})
    else:
        messages.success(request, _("The draft is saved, and has no problems."))
