"""Posts the event to a web address of the tenant's, signed in the Standard Webhooks way."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    ConnectionRef,
    Effect,
    Outcome,
    OutsideContext,
    PreviewContext,
    Template,
    register,
)

FACTS = ("before", "after", "snapshot", "data", "cut")


@register
class CallWebhook(Action):
    """The same body and the same message id at every try, so that the receiver can tell a repetition."""

    kind, version, label = "call_webhook", 1, gettext_lazy("Call a webhook")
    effects = (Effect.IDEMPOTENT,)
    sends = "call"

    class Params(ActionParams):
        """Where, and what: the whole event, or a JSON text of one's own."""

        connection: Annotated[str, ConnectionRef("webhook")] = Field(title=gettext_noop("Webhook"))
        path: Annotated[str, Template(target="url")] = Field(
            default="", max_length=500, title=gettext_noop("Path"), description=gettext_noop("Added to the address.")
        )
        body: Annotated[str, Template(target="json")] = Field(
            default="",
            max_length=20_000,
            title=gettext_noop("Body"),
            description=gettext_noop("JSON with templates in it; empty sends the whole event."),
            json_schema_extra={"widget": "textarea"},
        )

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Posts once; the status and the beginning of the answer are kept."""
        try:
            body = _body(params, record_key=context.record_key, event=context.event)
        except ValueError:
            return Outcome.rejected(_("The body is not JSON."), reason="template_error")
        secret = context.connection(params.connection).secret
        answer = context.outbound.post(
            params.connection,
            path=params.path,
            json=body,
            headers={"webhook-id": context.key},
            key=context.key,
            sign="standard" if secret else None,
        )
        return Outcome.done({"status": answer.status, "answer": answer.body_text})

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """The request without its signature."""
        return {"connection": params.connection, "path": params.path, "body": params.body or _("the whole event")}

    def sentence(self, params: Params) -> str:
        """Reads like “call the webhook warehouse”."""
        return _("call the webhook “%(connection)s”") % {"connection": params.connection}


def _body(params: CallWebhook.Params, *, record_key: str, event: Mapping[str, Any]) -> Any:
    """The JSON to send; nothing in it depends on when or how often it is sent. Raises ValueError."""
    if params.body:
        return json.loads(params.body)
    model = record_key.partition(":")[0]
    kind = ".".join(filter(None, (model, str(event.get("change") or ""))))
    data = {name: event[name] for name in FACTS if event.get(name)}
    return {
        "type": kind,
        "event": event.get("id"),
        "record": record_key,
        "source": event.get("source", ""),
        "data": data,
    }
