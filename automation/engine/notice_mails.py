"""Puts a notice into mails, one for each language of those whom it goes to."""

from collections.abc import Collection, Iterable

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.core.erasing import ERASED
from automation.engine import site
from automation.models import Notice
from tenants.context import acting_for
from tenants.models import Membership, Tenant


def compose(notice: Notice, *, only: Collection[str] | None = None) -> list[EmailMessage]:
    """The mails of a notice: its text, and how often it happened since the last one about the same subject.

    Empty where it has no recipients, or none of those in `only`.
    """
    tenant = Tenant.objects.only("name", "slug", "language").get(pk=notice.tenant_id)
    with acting_for(tenant.pk):
        cases = _cases(notice)
        wanted = [one for one in notice.recipients if one != ERASED and (only is None or one in only)]
        groups = _by_language(wanted, tenant)
    return [_mail(notice, tenant, language, to, cases) for language, to in groups.items()]


def _cases(notice: Notice) -> int | None:
    """How often it happened since the last mail; None where there was none."""
    same = Notice.objects.filter(kind=notice.kind, subject=notice.subject, pk__lt=notice.pk)
    earlier = same.order_by("-pk").first()
    return None if earlier is None else notice.cases + earlier.cases - 1


def _by_language(recipients: Iterable[str], tenant: Tenant) -> dict[str, list[str]]:
    people = Membership.objects.filter(is_active=True, user__email__in=list(recipients))
    own = dict(people.values_list("user__email", "language"))
    found: dict[str, list[str]] = {}
    for address in recipients:
        found.setdefault(own.get(address) or tenant.language, []).append(address)
    return found


def _mail(notice: Notice, tenant: Tenant, language: str, to: list[str], cases: int | None) -> EmailMessage:
    title, text = notice.said_in(language)
    with translation.override(language):
        since = ngettext(
            "It happened %(cases)d time since the last mail about it.",
            "It happened %(cases)d times since the last mail about it.",
            cases or 0,
        ) % {"cases": cases or 0}
        place = "\n".join(filter(None, [_("Tenant: %s") % tenant.name, site.page("notices", tenant.slug)]))
    return EmailMessage(
        subject=" ".join(f"[{tenant.name}] {title}".split()),
        body="\n\n".join([text, *([since] if cases is not None else []), place]) + "\n",
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=to,
        headers={"Auto-Submitted": "auto-generated", "Message-ID": _message_id(notice, tenant, language)},
    )


def _message_id(notice: Notice, tenant: Tenant, language: str) -> str:
    """The same for every try, so that a mail which is sent twice is seen once."""
    other = "" if language == tenant.language else f"-{language}"
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">") or "localhost"
    return f"<notice-{notice.pk}{other}@{host}>"
