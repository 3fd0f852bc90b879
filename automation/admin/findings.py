"""What staff should look at in a rule, on its page."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from automation.engine.findings import findings_of
from automation.models import Rule
from tenants.context import acting_for


def findings_list(rule: Rule) -> SafeString | str:
    """Loops, contradictions and the rest that concern a rule as it is live; one line each."""
    if rule.deleted_at is not None or rule.published_id is None:
        return str(_("none"))
    with acting_for(rule.tenant_id):
        found = findings_of(rule.pk)
    if not found:
        return str(_("none"))
    lines = ((one.severity, one.sentence) for one in found)
    return format_html("<ul>{}</ul>", format_html_join("", "<li><b>{}</b>: {}</li>", lines))
