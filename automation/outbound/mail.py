"""Sends one mail so that a failure tells whether the server may have taken it."""

import contextlib
import smtplib
import socket
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend

from automation.outbound.answers import Failing, OutboundError
from automation.outbound.sockets import Flight, Sockets, current_flight

SMTP_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
GOODBYE = 0.5  # seconds for the QUIT after the server has taken the mail
REFUSALS = range(400, 600)  # anything else is no refusal but half a line or nonsense
PERMANENT = 500  # SMTP replies from here on are final


class Watched(smtplib.SMTP):
    """An SMTP conversation under the watch, which says before the body leaves that it may arrive."""

    handle: socket.socket | None = None
    handing_over = False

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # not in the stubs
        self.handle = sock.dup()
        current_flight().add(self.handle)
        return sock

    def send(self, s: Any) -> None:
        """Sends within the time that is left. The body is what `data` sends as bytes; its command is a text."""
        if self.sock is not None:
            self.sock.settimeout(current_flight().remaining())
        if self.handing_over and isinstance(s, bytes):
            current_flight().sent = True
        super().send(s)

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Hands the body over. A server that refuses the DATA command has taken nothing."""
        self.handing_over = True
        return super().data(msg)

    def close(self) -> None:
        """Closes both handles of the socket."""
        super().close()
        if self.handle is not None:
            self.handle.close()
            self.handle = None


class WatchedSecure(smtplib.SMTP_SSL, Watched):
    """The same over TLS from the first byte."""


class Backend(EmailBackend):
    """Django's SMTP back end over watched conversations."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """What `open` makes."""
        return WatchedSecure if self.use_ssl else Watched


def send_mail(message: EmailMessage, *, sockets: Sockets, deadline: float) -> None:
    """Sends one message through the e-mail back end of the settings. Returns when the server has taken it.

    `deadline` is by `time.monotonic()`. Raises OutboundError: `retry` or `rejected` when the server certainly didn't
    take it, `maybe` when the body had been handed over and no answer came.
    """
    with sockets.flight(deadline) as flight:
        try:
            _deliver(message, flight)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise _explained(error, flight) from None


def _deliver(message: EmailMessage, flight: Flight) -> None:
    if settings.EMAIL_BACKEND == SMTP_BACKEND:
        connection: BaseEmailBackend = Backend(timeout=flight.remaining())
        connection.open()
    else:
        connection = get_connection()
        connection.open()
        flight.sent = True  # nothing is known about the phases of another back end
    try:
        taken = connection.send_messages([message])
    finally:
        _leave(connection)
    if not taken:
        raise OutboundError("The mail had no recipient.", failing="rejected")


def _leave(connection: BaseEmailBackend) -> None:
    """Says goodbye shortly; a server that fails at that has taken or refused the mail all the same."""
    with contextlib.suppress(smtplib.SMTPException, OSError):
        talk = getattr(connection, "connection", None)
        if isinstance(talk, Watched) and talk.sock is not None:
            talk.sock.settimeout(GOODBYE)
            talk.quit()
        else:
            connection.close()
    with contextlib.suppress(smtplib.SMTPException, OSError):
        if isinstance(talk := getattr(connection, "connection", None), Watched):
            talk.close()


def _explained(error: Exception, flight: Flight) -> OutboundError:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        worst = max((code for code, _reply in error.recipients.values()), default=PERMANENT)
        return OutboundError(f"The mail server refused the recipient with {worst}.", failing=_by_reply(worst))
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return OutboundError("The mail server refused the installation's login.", failing="retry")
    if isinstance(error, smtplib.SMTPResponseException) and error.smtp_code in REFUSALS:
        return OutboundError(f"The mail server answered {error.smtp_code}.", failing=_by_reply(error.smtp_code))
    if isinstance(error, ValueError):
        return OutboundError("The mail has an address or header that can't be sent.", failing="rejected")
    timed_out = flight.over() or isinstance(error, TimeoutError)
    if flight.sent:
        return OutboundError(
            "The mail server took the mail but didn't confirm it.", failing="maybe", timed_out=timed_out
        )
    return OutboundError("The mail server couldn't be reached.", failing="retry", timed_out=timed_out)


def _by_reply(code: int) -> Failing:
    return "rejected" if code >= PERMANENT else "retry"
