"""An SMTP sink: takes every mail, writes it into the ledger, and shows what has come."""

import asyncio
import email
import email.policy
from collections.abc import Sequence
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from northwind.loopback import pages
from northwind.loopback.http import Request, Response, page
from northwind.loopback.ledger import Ledger
from northwind.loopback.receivers import Manners
from northwind.loopback.script import Reply

LARGEST_MAIL = 10 * 1024 * 1024


class Mailbox:
    """The handler that aiosmtpd calls. A script's answers choose by `at` where they hold: `rcpt` or `data`."""

    def __init__(self, ledger: Ledger, manners: Manners) -> None:
        self._ledger = ledger
        self._manners = manners

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, rcpt_options: Sequence[str]
    ) -> str:
        """Accepts a recipient unless the script refuses it."""
        reply = self._manners.script.reply(key=f"rcpt:{address}", text="")
        if reply.kind == "status" and reply.at == "rcpt":
            return f"{reply.status} refused by the script"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Takes a mail; a mail that is dropped or left hanging has been taken all the same."""
        arrival = self._ledger.open()
        raw = envelope.content if isinstance(envelope.content, bytes) else str(envelope.content or "").encode()
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        key = str(mail.get("Message-ID", "")).strip()
        reply = self._manners.script.reply(
            key=key, text=" ".join(envelope.rcpt_tos) + "\n" + raw.decode("utf-8", "replace")
        )
        refused = reply.kind == "status" and reply.at == "data"
        silent = reply.kind in ("drop", "hang") or (not refused and self._manners.drops.next())
        if self._manners.delay:
            await asyncio.sleep(self._manners.delay)
        self._ledger.close(
            arrival,
            key=key,
            path="smtp",
            raw=raw,
            body=_described(mail, envelope),
            answer=None if silent else reply.status if refused else 250,
            shown=not refused and self._ledger.first_time(key),
        )
        if silent:
            await _leave(server, reply)
        return f"{reply.status} refused by the script" if refused else "250 OK taken"

    async def answer(self, request: Request) -> Response:
        """The page."""
        if request.path.partition("?")[0] == pages.STYLE_PATH:
            return Response(body=pages.STYLE.encode(), kind="text/css")
        return page(pages.receiver("Mail", [pages.row_of("smtp", entry) for entry in self._ledger.newest]))


async def serve_smtp(mailbox: Mailbox, *, port: int) -> asyncio.Server:
    """Listens on 127.0.0.1; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: SMTP(mailbox, hostname="localhost", data_size_limit=LARGEST_MAIL, enable_SMTPUTF8=True),
        "127.0.0.1",
        port,
        backlog=1024,
    )


async def _leave(server: SMTP, reply: Reply) -> None:
    """Never answers (`hang`), or closes the connection."""
    if reply.kind == "hang":
        await asyncio.Event().wait()
    if server.transport is not None:
        server.transport.abort()
    await asyncio.Event().wait()  # the connection's end cancels this task


def _described(mail: "EmailMessage[Any, Any]", envelope: Envelope) -> dict[str, Any]:
    return {
        "from": envelope.mail_from,
        "to": list(envelope.rcpt_tos),
        "subject": str(mail.get("Subject", "")),
        "text": _part(mail, "plain"),
        "html": _part(mail, "html"),
        "headers": [[name, str(value)] for name, value in mail.items()],
    }


def _part(mail: "EmailMessage[Any, Any]", kind: str) -> str:
    found = mail.get_body(preferencelist=(kind,))
    if found is None:
        return ""
    try:
        return str(found.get_content())
    except (LookupError, ValueError):
        return ""
