"""Sends a mail through the installation's mail server."""

import re
from email.utils import parseaddr
from typing import Annotated, Any, Literal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    CheckContext,
    Effect,
    FieldRef,
    Outcome,
    OutsideContext,
    PrepareContext,
    PreviewContext,
    Template,
    plain_address,
    register,
)

CONTACTS = ("customer.", "")  # where a record keeps its customer's address and wish, in this order
LIMITS = ((10, 10), (24 * 60, 50))  # minutes, and how many messages to one recipient in them
LONGEST_SUBJECT = 200
LONGEST_SHOWN = 100  # characters of an address that is refused
ID_LENGTH = 32  # 128 bits of the key: a longer Message-ID would be folded, which some servers misread

ONE_ADDRESS = re.compile(
    r"(?P<alone>[^\s<>,;]+)|"
    r'(?:"[^"\x00-\x1f\x7f]*" *|[^"<>,;:\x00-\x1f\x7f]*)<(?P<named>[^\s<>,;]+)>'
)


@register
class SendEmail(Action):
    """Never twice: once the server may have taken the mail, it isn't sent again by itself."""

    kind, version, label = "send_email", 1, gettext_lazy("Send an e-mail")
    effects = (Effect.AT_MOST_ONCE,)
    sends = "mail"
    needs_record = True

    class Params(ActionParams):
        """To whom, and what; with `html` the mail has both bodies."""

        to: Literal["customer", "assignee", "address", "field"] = Field(default="customer", title=gettext_noop("To"))
        address: Annotated[str, Template(target="header")] = Field(
            default="", max_length=500, title=gettext_noop("Address")
        )
        field: FieldRef | None = Field(default=None, title=gettext_noop("Field with the address"))
        subject: Annotated[str, Template(target="header")] = Field(max_length=4000, title=gettext_noop("Subject"))
        text: Template = Field(max_length=40_000, title=gettext_noop("Text"), json_schema_extra={"widget": "textarea"})
        html: Annotated[str, Template(target="html")] = Field(
            default="", max_length=40_000, title=gettext_noop("HTML"), json_schema_extra={"widget": "textarea"}
        )
        transactional: bool = Field(
            default=False,
            title=gettext_noop("Transactional"),
            description=gettext_noop("Also goes to customers who want no mail. Only for what they must know."),
        )

    def prepare(self, params: Params, context: PrepareContext) -> Outcome | None:
        """Finds the address as it is now, and every reason not to write to it."""
        if not context.exists():
            return Outcome.skipped("record_gone")
        given = self._address(params, context).strip()
        if not given:
            return _nobody(params, context)
        address = _single(given)
        if not address:
            return Outcome.rejected(_("“%s” is no single e-mail address.") % given[:LONGEST_SHOWN])
        if _is_own(address) or context.is_own_address(address):
            return Outcome.skipped("self_address", _("The address is our own."))
        machine = context.answers_machine(address)
        if machine:
            return Outcome.skipped("auto_submitted", _("A machine wrote from there (%s).") % machine)
        if not params.transactional and _opted_out(address, context):
            return Outcome.skipped("opted_out")
        if any(context.count_sent(address, minutes=minutes) >= most for minutes, most in LIMITS):
            return Outcome.skipped("limit_per_recipient")
        context.keep(recipient=address)
        return None

    def _address(self, params: Params, context: PrepareContext) -> str:
        if params.to == "address":
            return params.address
        if params.to == "assignee":
            member = context.current("assignee")
            return context.member_address(member) or "" if isinstance(member, int) else ""
        paths = [f"{prefix}email" for prefix in CONTACTS] if params.to == "customer" else [params.field or ""]
        return next((str(found) for path in paths if (found := context.current(path))), "")

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Hands the mail over; its Message-ID is the same at every try."""
        message_id = f"<{context.key[:ID_LENGTH]}@{_domain()}>"
        message = EmailMultiAlternatives(
            subject=" ".join(params.subject.split())[:LONGEST_SUBJECT],
            body=params.text,
            to=[context.kept["recipient"]],
            headers={"Message-ID": message_id, "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"},
        )
        if params.html.strip():
            message.attach_alternative(params.html, "text/html")
        context.outbound.mail(message)
        return Outcome.done({"message_id": message_id})

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """The mail as it would be written."""
        shown = params.model_dump(mode="json", include={"subject", "text", "html", "transactional"})
        return {"to": params.address if params.to == "address" else params.field or params.to, **shown}

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """A recipient that can be found."""
        fields = context.automatable.fields if context.automatable else None
        empty = [(f"/{name}", _("Enter a text.")) for name in ("subject", "text") if not getattr(params, name).strip()]
        if empty:
            return empty
        if params.to == "address":
            plain = "{" in params.address or _single(params.address)
            return [] if plain else [("/address", _("Enter an e-mail address."))]
        if params.to == "field":
            return [] if params.field else [("/field", _("Choose the field that holds the address."))]
        wanted = ["assignee"] if params.to == "assignee" else [f"{prefix}email" for prefix in CONTACTS]
        if fields is not None and not any(path in fields for path in wanted):
            return [("/to", _("These records have no such address."))]
        return []

    def sentence(self, params: Params) -> str:
        """Reads like “send the mail Welcome to the customer”."""
        names = {"subject": params.subject, "to": params.field if params.to == "field" else params.address}
        if params.to == "customer":
            return _("send the mail “%(subject)s” to the customer") % names
        if params.to == "assignee":
            return _("send the mail “%(subject)s” to the assignee") % names
        return _("send the mail “%(subject)s” to %(to)s") % names


def _nobody(params: SendEmail.Params, context: PrepareContext) -> Outcome:
    """Nobody to write to is no failure of the rule."""
    if params.to == "assignee" and context.current("assignee") is None:
        return Outcome.skipped("no_assignee")
    return Outcome.skipped("", _("There is no e-mail address to send to."))


def _opted_out(address: str, context: PrepareContext) -> bool:
    """Whether the address is that of a customer who wants no mail, however the rule came by it."""
    for prefix in CONTACTS:
        theirs = context.current(f"{prefix}email")
        if isinstance(theirs, str) and theirs.casefold() == address.casefold():
            return context.current(f"{prefix}email_opt_out") is True
    return False


def _is_own(address: str) -> bool:
    """Whether mail to this address would come back to us: the addresses we send from, with or without a +suffix."""
    own = {plain_address(parseaddr(text)[1]) for text in (settings.DEFAULT_FROM_EMAIL, settings.SERVER_EMAIL)}
    return plain_address(address) in own


def _single(text: str) -> str:
    """The one address of a text, with or without a display name; "" where it holds none, or anything besides.

    The library's parser would take the first of several, and join what is on both sides of a space.
    """
    found = ONE_ADDRESS.fullmatch(text.strip())
    address = (found["alone"] or found["named"]) if found else ""
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return str(address)


def _domain() -> str:
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
