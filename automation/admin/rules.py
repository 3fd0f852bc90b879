"""Rules and their versions: written on the tenants' pages, switched and paused here."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.asking import ask_why
from automation.admin.base import BY_TENANT, ReadOnlyAdmin, act, by_number, pretty, rows_link
from automation.admin.explain import why_view
from automation.admin.findings import findings_list
from automation.admin.rule_pages import RulePages
from automation.admin.trial import try_view
from automation.engine import rules
from automation.engine.operate import pause
from automation.models import Backtest, Rule, RuleVersion, Run
from tenants.context import acting_for


@admin.register(Rule)
class RuleAdmin(RulePages):
    """Found by its number, or by its tenant."""

    heavy = ("published__definition",)
    list_display = ("id", "tenant", "position", "name", "on", "off_mode", "published", "owner", "deleted_at")
    list_filter = (BY_TENANT,)
    list_select_related = ("tenant", "published", "owner")
    readonly_fields = ("rows", "doors_to", "under_way", "live", "draft_text", "to_look_at")
    actions = ("switch_on", "switch_off", "hold", "go_on", "cancel_older", "undelete")

    def get_urls(self) -> list[URLPattern]:
        """The pages that explain and try out, before the admin's own."""
        why, try_out = self.admin_site.admin_view(self.why), self.admin_site.admin_view(self.try_out)
        return [
            path("<path:object_id>/explain/", why, name="automation_rule_explain"),
            path("<path:object_id>/try/", try_out, name="automation_rule_try"),
            *super().get_urls(),
        ]

    def why(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Why it ran for a record's events, or didn't."""
        return why_view(self, request, object_id)

    def try_out(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What its draft would do."""
        return try_view(self, request, object_id)

    @admin.action(description=_("Switch on"), permissions=["operate"])
    def switch_on(self, request: HttpRequest, rows: QuerySet[Rule]) -> None:
        """Their published versions run; held runs go on."""
        act(request, rows, rules.switch_on, done=str(_("Rules switched on: %d.")))

    @admin.action(description=_("Switch off, and hold what waits"), permissions=["operate"])
    def switch_off(self, request: HttpRequest, rows: QuerySet[Rule]) -> HttpResponse | None:
        """New events don't start them; waiting runs are held."""
        return ask_why(
            self, request, rows, rules.switch_off,
            title=str(_("Switch off")), action="switch_off", done=str(_("Rules switched off: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Pause: events are kept as runs that wait"), permissions=["operate"])
    def hold(self, request: HttpRequest, rows: QuerySet[Rule]) -> HttpResponse | None:
        """They still get their runs, which wait."""
        return ask_why(
            self, request, rows, pause.pause_rule,
            title=str(_("Pause the rules")), action="hold", done=str(_("Rules paused: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Resume"), permissions=["operate"])
    def go_on(self, request: HttpRequest, rows: QuerySet[Rule]) -> None:
        """Their pauses end, and held runs go on."""
        act(request, rows, pause.resume_rule, done=str(_("Rules resumed: %d.")))

    @admin.action(description=_("Cancel the runs on older versions"), permissions=["operate"])
    def cancel_older(self, request: HttpRequest, rows: QuerySet[Rule]) -> HttpResponse | None:
        """Runs on the live version go on."""
        return ask_why(
            self, request, rows, rules.cancel_older, title=str(_("Cancel the runs on older versions")),
            action="cancel_older", done=str(_("Rules whose older runs were cancelled: %d.")),
        )  # fmt: skip

    @admin.action(description=_("Bring back what was deleted"), permissions=["operate"])
    def undelete(self, request: HttpRequest, rows: QuerySet[Rule]) -> HttpResponse | None:
        """Switched off; within 30 days."""
        return ask_why(
            self, request, rows, rules.undelete,
            title=str(_("Bring back")), action="undelete", done=str(_("Rules brought back: %d.")),
        )  # fmt: skip

    @admin.display(description=_("pages"))
    def doors_to(self, rule: Rule) -> SafeString:
        """Where it is published, given away and deleted."""
        return self.doors(rule)

    @admin.display(description=_("runs under way"))
    def under_way(self, rule: Rule) -> SafeString | str:
        """How many are on which of its versions."""
        with acting_for(rule.tenant_id):
            found = rules.in_use(rule.pk)
        lines = ((_("version %(number)d: %(runs)d") % {"number": use.number, "runs": use.runs},) for use in found)
        return format_html_join("", "<div>{}</div>", lines) or str(_("none"))

    @admin.display(description=_("rows"))
    def rows(self, rule: Rule) -> SafeString:
        """Where to find its versions and runs."""
        links = (
            rows_link(RuleVersion, str(_("Versions")), rule__id__exact=rule.pk),
            rows_link(Run, str(_("Runs")), rule__id__exact=rule.pk, tenant__id__exact=rule.tenant_id),
            format_html(
                '<a href="{}">{}</a>',
                reverse("admin:automation_rule_explain", args=[rule.pk]),
                _("Why did it not run?"),
            ),
            format_html('<a href="{}">{}</a>', reverse("admin:automation_rule_try", args=[rule.pk]), _("Try it out")),
            rows_link(Backtest, str(_("Backtests")), rule__id__exact=rule.pk, tenant__id__exact=rule.tenant_id),
        )
        return format_html_join(" · ", "{}", ((link,) for link in links))

    @admin.display(description=_("to look at"))
    def to_look_at(self, rule: Rule) -> SafeString | str:
        """Loops, contradictions and the rest, before they happen."""
        return findings_list(rule)

    @admin.display(description=_("live definition"))
    def live(self, rule: Rule) -> SafeString | str:
        """What runs now."""
        return pretty(rule.published.definition) if rule.published else str(_("none"))

    @admin.display(description=_("draft"))
    def draft_text(self, rule: Rule) -> SafeString | str:
        """What is being edited."""
        return pretty(rule.draft.definition) if hasattr(rule, "draft") else str(_("none"))


@admin.register(RuleVersion)
class RuleVersionAdmin(ReadOnlyAdmin):
    """Immutable; found by its number, or by its rule."""

    heavy = ("definition",)
    list_display = ("id", "tenant", "rule", "number", "note", "published_by", "created_at")
    list_filter = (BY_TENANT, by_number("rule__id__exact", _("rule (number)")))
    list_select_related = ("tenant", "rule", "published_by")
    exclude = ("definition",)
    readonly_fields = ("text",)

    @admin.display(description=_("definition"))
    def text(self, version: RuleVersion) -> SafeString:
        """As it was published."""
        return pretty(version.definition)
