"""The pages of one rule in the admin on which it is published, deleted or given to somebody else."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import ReadOnlyAdmin
from automation.core.errors import DefinitionError
from automation.engine import rules
from automation.engine.operate import Refused
from automation.models import Rule
from tenants.context import acting_for

TEXT = 400


class PublishForm(forms.Form):
    """What becomes of runs under way, and a note; published is the revision that was looked at."""

    revision = forms.IntegerField(widget=forms.HiddenInput)
    waiting = forms.ChoiceField(
        label=_("Runs under way"),
        choices=[("keep", _("finish on the version that they are on")), ("cancel", _("are cancelled"))],
    )
    existing_rate = forms.FloatField(
        label=_("Run for so many of the records that it concerns already a minute (empty: leave them alone)"),
        required=False,
        min_value=0,
    )
    note = forms.CharField(label=_("Note"), max_length=TEXT, required=False, widget=forms.TextInput(attrs={"size": 60}))


class DeleteForm(forms.Form):
    """Why."""

    reason = forms.CharField(label=_("Reason"), max_length=TEXT, widget=forms.TextInput(attrs={"size": 60}))


class OwnerForm(forms.Form):
    """To whom, and why."""

    login = forms.CharField(label=_("Login of the new owner"), max_length=150)
    reason = forms.CharField(
        label=_("Reason"), max_length=TEXT, required=False, widget=forms.TextInput(attrs={"size": 60})
    )


class RulePages(ReadOnlyAdmin):
    """Adds the pages to those of the list and of one rule; each acts for the rule's own tenant."""

    def get_urls(self) -> list[URLPattern]:
        """The pages, before the admin's own."""
        pages = {"publish": self.publish_view, "delete": self.delete_rule_view, "owner": self.owner_view}
        named = [
            path(f"<path:object_id>/{word}/", self.admin_site.admin_view(view), name=f"automation_rule_{word}_page")
            for word, view in pages.items()
        ]
        return [*named, *super().get_urls()]

    def doors(self, rule: Rule) -> SafeString:
        """Links to the pages, for the page of the rule."""
        words = (("publish", _("Review and publish")), ("owner", _("Change the owner")), ("delete", _("Delete")))
        if rule.deleted_at is not None:
            return format_html("{}", _("deleted"))
        links = ((reverse(f"admin:automation_rule_{word}_page", args=[rule.pk]), text) for word, text in words)
        return format_html_join(" · ", '<a href="{}">{}</a>', links)

    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Says what publishing the draft would do, and publishes it."""
        rule = self._rule(request, object_id)
        with acting_for(rule.tenant_id):
            plan = rules.plan(rule.pk)
        shown = {"plan": plan, "keep": plan.sentences("keep"), "cancel": plan.sentences("cancel")}
        form = PublishForm(request.POST or None, initial={"revision": plan.revision, "waiting": "keep"})

        def publish() -> str:
            version = rules.publish(rule.pk, **form.cleaned_data)
            return str(_("Version %d is live.") % version.number)

        return self._page(request, rule, "publish", form, publish, **shown)

    def delete_rule_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Says what ends with the rule, asks why, and deletes it; for 30 days it can be brought back."""
        rule = self._rule(request, object_id)
        with acting_for(rule.tenant_id):
            goes = rules.what_goes(rule.pk)
        form = DeleteForm(request.POST or None)

        def delete() -> str:
            done = rules.delete(rule.pk, **form.cleaned_data)
            return str(_("The rule is deleted; runs cancelled: %d.") % (done.ended + done.asked))

        return self._page(request, rule, "delete", form, delete, goes=goes)

    def owner_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Gives the rule to another of the tenant's people."""
        rule = self._rule(request, object_id)
        form = OwnerForm(request.POST or None)

        def give() -> str:
            heir = User.objects.filter(username=form.cleaned_data["login"]).first()
            rules.give(rule.pk, owner_id=heir.pk if heir else 0, reason=form.cleaned_data["reason"])
            return str(_("The rule belongs to %s now.") % form.cleaned_data["login"])

        return self._page(request, rule, "owner", form, give)

    def _rule(self, request: HttpRequest, object_id: str) -> Rule:
        rule: Rule | None = self.get_object(request, object_id)
        if rule is None or rule.deleted_at is not None:
            raise Http404
        if not self.has_operate_permission(request):
            raise PermissionDenied
        return rule

    def _page(
        self, request: HttpRequest, rule: Rule, word: str, form: forms.Form, verb: Callable[[], str], **shown: Any
    ) -> HttpResponse:
        """Shows the form, or does the verb and goes back; a refusal is shown above the form."""
        if request.method == "POST" and form.is_valid():
            try:
                with acting_for(rule.tenant_id):
                    messages.success(request, verb())
            except (Refused, DefinitionError) as refusal:
                form.add_error(None, str(refusal))
            else:
                where = reverse("admin:automation_rule_changelist")
                if word != "delete":
                    where = reverse("admin:automation_rule_change", args=[rule.pk])
                return HttpResponseRedirect(where)
        titles = {"publish": _("Review and publish"), "delete": _("Delete the rule"), "owner": _("Change the owner")}
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": rule,
            "title": titles[word],
            "form": form,
            **shown,
        }
        return TemplateResponse(request, f"admin/automation/rule_{word}.html", context)
