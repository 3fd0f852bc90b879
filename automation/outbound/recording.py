"""A door that leads nowhere: it renders every request and mail in full, keeps them, and answers what it is told."""

from dataclasses import dataclass, field
from typing import Any

from django.core.mail import EmailMessage, EmailMultiAlternatives

from automation.outbound.answers import Answer
from automation.outbound.door import Outbound
from automation.outbound.masking import MASK, Masker

SIGNATURES = frozenset({"webhook-signature", "authorization"})  # of no use to a reader, and derived from a secret


@dataclass(slots=True)
class Request:
    """What would have been sent, secrets masked: `kind` is "http" or "mail"; `body` is the text as it would go out."""

    kind: str
    to: str
    body: str
    headers: dict[str, str] = field(default_factory=dict)
    subject: str = ""
    html: str = ""


class Recording(Outbound):
    """The same door up to the moment of sending; nothing is resolved, connected or sent."""

    requests: list[Request]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.requests = []

    def mail(self, message: EmailMessage) -> None:
        """Keeps the mail."""
        parts = message.alternatives if isinstance(message, EmailMultiAlternatives) else []
        html = next((str(part[0]) for part in parts if part[1] == "text/html"), "")
        headers = {name: str(value) for name, value in message.extra_headers.items()}
        self.requests.append(
            Request(
                "mail",
                ", ".join(message.recipients()),
                str(message.body),
                {"From": message.from_email, **headers},
                subject=str(message.subject),
                html=html,
            )
        )

    def _exchange(self, url: str, *, body: bytes, headers: dict[str, str], mask: Masker, reuse: bool) -> Answer:
        shown = {name: MASK if name.lower() in SIGNATURES else mask(value) for name, value in headers.items()}
        self.requests.append(Request("http", mask(url), mask(body.decode("utf-8", "replace")), shown))
        return Answer(status=200, headers={}, body_text="", elapsed=0.0, body=b"{}")
