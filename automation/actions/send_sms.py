"""Sends a text message to a phone, through Twilio or a service that speaks its protocol."""

import base64
import re
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    Automatable,
    CheckContext,
    ConnectionRef,
    Effect,
    FieldRef,
    Outcome,
    OutsideContext,
    PrepareContext,
    PreviewContext,
    Template,
    register,
)

LONGEST_TEXT = 1600  # of Twilio
NUMBER = re.compile(r"\+?\d{4,15}", re.ASCII)
CONTACT_PATHS = ("customer.phone", "phone")
LIMITS = ((10, 10), (24 * 60, 50))  # minutes, and how many messages to one recipient in them


@register
class SendSms(Action):
    """Nothing tells the service that a message is a repetition, so by default none is sent twice."""

    kind, version, label = "send_sms", 1, gettext_lazy("Send an SMS")
    effects = (Effect.AT_MOST_ONCE, Effect.AT_LEAST_ONCE)
    sends = "message"
    needs_record = True

    class Params(ActionParams):
        """To whom, and what."""

        connection: Annotated[str, ConnectionRef("sms")] = Field(title=gettext_noop("SMS service"))
        to: Literal["customer", "field", "number"] = Field(default="customer", title=gettext_noop("To"))
        field: FieldRef | None = Field(default=None, title=gettext_noop("Field with the number"))
        number: Annotated[str, Template(target="header")] = Field(
            default="", max_length=200, title=gettext_noop("Number")
        )
        text: Template = Field(max_length=20_000, title=gettext_noop("Text"), json_schema_extra={"widget": "textarea"})

    def prepare(self, params: Params, context: PrepareContext) -> Outcome | None:
        """Finds the number as it is now."""
        if not context.exists():
            return Outcome.skipped("record_gone")
        number = _plain(self._number(params, context))
        if not number:
            return Outcome.skipped("", _("There is no phone number to send to."))
        if not NUMBER.fullmatch(number):
            return Outcome.rejected(_("The phone number isn't valid."))
        if not params.text.strip():
            return Outcome.rejected(_("The text came out empty."), reason="template_error")
        if any(context.count_sent(number, minutes=minutes) >= most for minutes, most in LIMITS):
            return Outcome.skipped("limit_per_recipient")
        context.keep(recipient=number)
        return None

    def _number(self, params: Params, context: PrepareContext | PreviewContext) -> str:
        if params.to == "number":
            return params.number
        paths = CONTACT_PATHS if params.to == "customer" else (params.field or "",)
        return next((str(found) for path in paths if (found := context.current(path))), "")

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Posts the message on a connection of its own."""
        where = context.connection(params.connection)
        account, sender = str(where.settings.get("account_sid", "")), str(where.settings.get("from", ""))
        if not where.secret or not account or not sender:
            return Outcome.rejected(_("The connection needs an account, a sender and a token."))
        login = base64.b64encode(f"{account}:{where.secret}".encode()).decode()
        answer = context.outbound.post(
            params.connection,
            path=f"2010-04-01/Accounts/{account}/Messages.json",
            data={"To": context.kept["recipient"], "From": sender, "Body": params.text[:LONGEST_TEXT]},
            headers={"Authorization": f"Basic {login}"},
            key=context.key,
            reuse=False,
        )
        found = answer.json()
        return Outcome.done(
            {"status": answer.status, "sid": str(found.get("sid", ""))[:64] if isinstance(found, dict) else ""}
        )

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """The recipient as it is now, and the text."""
        return {"connection": params.connection, "to": _plain(self._number(params, context)), "text": params.text}

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """A text, and a place that holds a number."""
        if not params.text.strip():
            return [("/text", _("Enter a text."))]
        if params.to == "number":
            return [] if params.number else [("/number", _("Enter a phone number."))]
        if params.to == "field":
            return [] if params.field else [("/field", _("Choose the field that holds the number."))]
        return [] if _has_contact(context.automatable) else [("/to", _("These records have no phone number."))]

    def sentence(self, params: Params) -> str:
        """Reads like “send the SMS We are on it to the customer”."""
        names = {"text": params.text, "to": params.field if params.to == "field" else params.number}
        if params.to == "customer":
            return _("send the SMS “%(text)s” to the customer") % names
        return _("send the SMS “%(text)s” to %(to)s") % names


def _has_contact(entry: Automatable | None) -> bool:
    return entry is None or any(path in entry.fields for path in CONTACT_PATHS)


def _plain(number: str) -> str:
    """A number without the spaces, brackets and dashes that people write; 00 at its beginning is a plus."""
    digits = re.sub(r"[\s()/.\-]", "", number)
    return "+" + digits[2:] if digits.startswith("00") else digits
