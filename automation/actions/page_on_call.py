"""Pages whoever is on call, through PagerDuty's Events API v2 or a service that speaks it."""

from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from pydantic import Field

from automation.extend import (
    Action,
    ActionParams,
    CheckContext,
    ConnectionRef,
    Effect,
    Outcome,
    OutsideContext,
    PreviewContext,
    Retry,
    Template,
    register,
)

LONGEST_SUMMARY = 1024  # of Events API v2


@register
class PageOnCall(Action):
    """The key is the event's dedup_key, so a page that is sent again is shown once."""

    kind, version, label = "page_on_call", 1, gettext_lazy("Page on call")
    effects = (Effect.IDEMPOTENT,)
    sends = "call"
    default_retry = Retry(max_attempts=8, base_delay=1.0, factor=2.0, max_delay=60.0)

    class Params(ActionParams):
        """Where, and what it says."""

        connection: Annotated[str, ConnectionRef("pager")] = Field(title=gettext_noop("Pager"))
        summary: Annotated[str, Template(target="header")] = Field(max_length=4000, title=gettext_noop("What it says"))
        service: Annotated[str, Template(target="header")] = Field(
            default="", max_length=200, title=gettext_noop("Service"), description=gettext_noop("What is affected.")
        )
        severity: Literal["critical", "error", "warning", "info"] = Field(
            default="critical", title=gettext_noop("Severity")
        )

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Sends one event of the action “trigger”."""
        secret = context.connection(params.connection).secret
        if not secret:
            return Outcome.rejected(_("The connection has no routing key."))
        body = {"routing_key": secret, **_event(params, record_key=context.record_key, key=context.key)}
        answer = context.outbound.post(params.connection, json=body, key=context.key)
        return Outcome.done({"status": answer.status, "dedup_key": context.key})

    def preview(self, params: Params, context: PreviewContext) -> dict[str, Any]:
        """The event without its routing key."""
        return {"connection": params.connection, **_event(params, record_key=context.record_key, key="")}

    def check(self, params: Params, context: CheckContext) -> list[tuple[str, str]]:
        """Something to say."""
        return [] if params.summary.strip() else [("/summary", _("Enter what the page says."))]

    def sentence(self, params: Params) -> str:
        """Reads like “page on call: Urgent: printer on fire”."""
        return _("page on call: “%(summary)s”") % {"summary": params.summary}


def _event(params: PageOnCall.Params, *, record_key: str, key: str) -> dict[str, Any]:
    return {
        "event_action": "trigger",
        "dedup_key": key,
        "payload": {
            "summary": params.summary.strip()[:LONGEST_SUMMARY] or record_key,
            "source": params.service.strip() or record_key,
            "severity": params.severity,
            "component": record_key,
        },
    }
