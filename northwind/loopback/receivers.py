"""The HTTP receivers: what each calls a key, whether it knows a message again, and what it usually answers."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from northwind.loopback import pages
from northwind.loopback.http import Request, Response, page
from northwind.loopback.ledger import Ledger
from northwind.loopback.script import Drops, Reply, Script

KEPT_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature", "idempotency-key", "content-type", "user-agent")


@dataclass(frozen=True, slots=True)
class Manners:
    """How a receiver behaves where the script says nothing: seconds until it answers, and who gets no answer."""

    delay: float
    drops: Drops
    script: Script


class Receiver:
    """Takes every POST, writes it into the ledger, and shows on its page what has come."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, ledger: Ledger, manners: Manners) -> None:
        self._ledger = ledger
        self._manners = manners

    def body(self, request: Request) -> Any:
        """The body as it stands in the ledger."""
        return request.json()

    def key(self, request: Request, body: Any) -> str:
        """What the receiver knows a message by; empty where the sender gave nothing."""
        return request.headers.get("idempotency-key", "")

    def shown(self, key: str) -> bool:
        """Whether a person sees something new."""
        return self._ledger.first_time(key)

    def refusal(self, request: Request, body: Any) -> Response | None:
        """The answer to a request that the real service would refuse."""
        return None

    def usual(self, request: Request, body: Any, key: str) -> Response:
        """The answer to an accepted request."""
        return _json(200, {"status": "received"})

    async def answer(self, request: Request) -> Response:
        """Answers one request."""
        if request.method == "GET":
            return self._page(request)
        if request.method != "POST":
            return _json(405, {"error": "POST or GET"})
        return await self._take(request)

    async def _take(self, request: Request) -> Response:
        arrival = self._ledger.open()
        body = self.body(request)
        key = self.key(request, body)
        reply = self._manners.script.reply(key=key, text=f"{request.path}\n{request.body.decode('utf-8', 'replace')}")
        response = self._prescribed(reply) or self.refusal(request, body)
        accepted = response is None or response.drop or 200 <= response.status < 300
        shown = accepted and not (response and response.hang) and self.shown(key)
        if response is None:
            dropped = self._manners.drops.next()
            response = Response(drop=True) if dropped else self.usual(request, body, key)
        if self._manners.delay:
            await asyncio.sleep(self._manners.delay)
        silent = response.drop or response.hang
        close = partial(
            self._ledger.close,
            arrival,
            key=key,
            path=request.path,
            raw=request.body,
            body=body,
            answer=None if silent else response.status,
            shown=shown,
            headers={name: request.headers[name] for name in KEPT_HEADERS if name in request.headers},
        )
        if response.hang:
            return replace(response, gone=close)
        close()
        return response

    def _prescribed(self, reply: Reply) -> Response | None:
        if reply.kind == "ok":
            return None
        if reply.kind in ("hang", "drop"):
            return Response(hang=reply.kind == "hang", drop=reply.kind == "drop")
        text = json.dumps({"status": reply.status}) if reply.body is None else reply.body
        headers = dict(reply.headers)
        kind = headers.pop("Content-Type", "application/json")
        trickle = (reply.part, reply.every_ms / 1000) if reply.kind == "trickle" else None
        return Response(status=reply.status, body=text.encode(), kind=kind, headers=headers, trickle=trickle)

    def _page(self, request: Request) -> Response:
        if request.path.partition("?")[0] == pages.STYLE_PATH:
            return Response(body=pages.STYLE.encode(), kind="text/css")
        return page(pages.receiver(self.title, [self.row(entry) for entry in self._ledger.newest]))

    def row(self, entry: Mapping[str, Any]) -> pages.Row:
        """One line of the page."""
        return pages.row_of(self.name, entry)


class Pager(Receiver):
    """PagerDuty's Events API v2: one dedup_key is one page, however often it is sent."""

    name, title = "pager", "Pager"

    def key(self, request: Request, body: Any) -> str:
        """The dedup_key."""
        return str(body.get("dedup_key") or "") if isinstance(body, dict) else ""

    def refusal(self, request: Request, body: Any) -> Response | None:
        """Events API v2 refuses what has no routing key, no action, or a trigger without a summary."""
        if not isinstance(body, dict) or not body.get("routing_key"):
            return _json(400, {"status": "invalid event", "errors": ["'routing_key' is missing or blank"]})
        if body.get("event_action") not in ("trigger", "acknowledge", "resolve"):
            return _json(400, {"status": "invalid event", "errors": ["'event_action' is missing or invalid"]})
        payload = body.get("payload")
        if body["event_action"] == "trigger" and not (isinstance(payload, dict) and payload.get("summary")):
            return _json(400, {"status": "invalid event", "errors": ["'payload.summary' is missing or blank"]})
        return None

    def usual(self, request: Request, body: Any, key: str) -> Response:
        """202, as the real one."""
        return _json(202, {"status": "success", "message": "Event processed", "dedup_key": key})


class Webhooks(Receiver):
    """A receiver that keeps the rules of Standard Webhooks: one webhook-id is one message."""

    name, title = "webhooks", "Webhooks"

    def key(self, request: Request, body: Any) -> str:
        """The message id, else the idempotency key."""
        return request.headers.get("webhook-id") or request.headers.get("idempotency-key", "")


class Sms(Receiver):
    """A Twilio-compatible service, which sends every request that it takes: no key makes it know one again."""

    name, title = "sms", "SMS"

    def body(self, request: Request) -> Any:
        """The form as an object."""
        return dict(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))

    def shown(self, key: str) -> bool:
        """Every message reaches the phone."""
        return True

    def refusal(self, request: Request, body: Any) -> Response | None:
        """Twilio refuses a request without a login, and one without a recipient, sender or text."""
        if not request.headers.get("authorization", "").startswith("Basic "):
            return _json(401, {"code": 20003, "message": "Authenticate", "status": 401})
        missing = next((name for name in ("To", "From", "Body") if not body.get(name)), None)
        if missing:
            return _json(400, {"code": 21604, "message": f"'{missing}' is required", "status": 400})
        return None

    def usual(self, request: Request, body: Any, key: str) -> Response:
        """201 with the id of the message."""
        sid = f"SM{len(self._ledger.newest):032x}"
        return _json(201, {"sid": sid, "status": "queued", "to": body["To"], "from": body["From"]})


RECEIVERS: dict[str, type[Receiver]] = {kind.name: kind for kind in (Pager, Webhooks, Sms)}


def _json(status: int, value: Any) -> Response:
    return Response(status=status, body=json.dumps(value).encode())
