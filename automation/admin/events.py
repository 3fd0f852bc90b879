"""Events as recorded."""

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.admin.base import BY_TENANT, ReadOnlyAdmin, by_number, by_text, by_word, pretty, rows_link
from automation.admin.explain import judged_by
from automation.models import Event, Run


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Found by its number or that of its record."""

    found_by = ("id", "record")
    heavy = ("facts",)
    list_display = (
        "id",
        "tenant",
        "kind",
        "change",
        "model",
        "record",
        "actor",
        "source",
        "batch",
        "depth",
        "created_at",
        "is_matched",
    )
    list_filter = (
        BY_TENANT,
        by_word("source", _("source"), ["person", "api", "import", "automation", "schedule"]),
        by_text("batch", _("batch of an import")),
        by_number("cause_run_id", _("run that wrote it (number)")),
    )
    list_select_related = ("tenant",)
    exclude = ("facts",)
    readonly_fields = ("recorded", "runs", "judged")

    @admin.display(boolean=True, description=_("matched"))
    def is_matched(self, event: Event) -> bool:
        """Whether rules have been judged on it."""
        return event.matched_at is not None

    @admin.display(description=_("facts"))
    def recorded(self, event: Event) -> SafeString:
        """What rules are judged on."""
        return pretty(event.facts)

    @admin.display(description=_("runs"))
    def runs(self, event: Event) -> SafeString:
        """Where to find what it started."""
        return rows_link(Run, str(_("Runs that it started")), event__id__exact=event.pk)

    @admin.display(description=_("rules"))
    def judged(self, event: Event) -> SafeString | str:
        """What became of it at each rule that listens to its kind of record."""
        return judged_by(event)
