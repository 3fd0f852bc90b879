"""A mail is sent so that a failure tells whether the server may have taken it."""

import smtplib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from loopback_servers import Server, running
from outbound_types import MakeDoor, RawServer
from pytest_django import Settings

from automation.outbound import OutboundError, Sockets


@pytest.fixture
def smtp(tmp_path: Path, settings: Settings) -> Iterator[Server]:
    with running("smtp", tmp_path) as server:
        use(settings, server.port)
        yield server


def use(settings: Settings, port: int) -> None:
    """Let mail go to a port on loopback."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port


def message(**more: Any) -> EmailMessage:
    headers = {"Message-ID": "<key-1@example.com>"}
    return EmailMessage("Hello", ".dotted\nbody", "desk@example.com", ["ana@example.com"], headers=headers, **more)


def failure(door: Any, mail_message: EmailMessage | None = None) -> OutboundError:
    with pytest.raises(OutboundError) as caught:
        door.mail(mail_message or message())
    return caught.value


def test_a_mail_arrives_once(door: MakeDoor, smtp: Server) -> None:
    door("").mail(message())
    [entry] = smtp.entries(1)
    assert (entry["key"], entry["answer"]) == ("<key-1@example.com>", 250)
    assert entry["body"]["to"] == ["ana@example.com"]
    assert entry["body"]["text"].splitlines() == [".dotted", "body"]


@pytest.mark.case("D14")
def test_a_server_that_takes_the_body_and_goes_silent_may_have_it(door: MakeDoor, smtp: Server) -> None:
    smtp.prescribe("drop")
    error = failure(door(""))
    assert (error.failing, error.timed_out) == ("maybe", False)
    assert len(smtp.entries()) == 1


@pytest.mark.case("D14")
def test_no_answer_to_the_body_in_time_may_have_it_too(door: MakeDoor, smtp: Server) -> None:
    smtp.prescribe("hang")
    error = failure(door("", timeout=0.4))
    assert (error.failing, error.timed_out) == ("maybe", True)


@pytest.mark.parametrize(("code", "failing"), [(451, "retry"), (452, "retry"), (550, "rejected"), (554, "rejected")])
@pytest.mark.parametrize("at", ["rcpt", "data"])
def test_a_refusal_in_words_is_certain(door: MakeDoor, smtp: Server, code: int, failing: str, at: str) -> None:
    smtp.prescribe({"status": code, "at": at})
    error = failure(door(""))
    assert (error.failing, str(code) in str(error)) == (failing, True)
    assert "ana@example.com" not in str(error)


def test_a_server_that_is_not_there_is_tried_again(door: MakeDoor, settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    use(settings, port)
    assert failure(door("")).failing == "retry"


def talking(*lines: bytes, until: bytes = b"", heard: list[bytes] | None = None) -> Any:
    """A server that answers each command with the next line, and closes after the last; `heard` gets the commands."""

    def talk(client: socket.socket) -> None:
        for line in lines:
            client.sendall(line + b"\r\n")
            command = client.recv(65536)
            if heard is not None:
                heard.append(command)
            if command == until:
                return

    return talk


@pytest.mark.parametrize(
    "lines",
    [
        (b"220 hi",),
        (b"220 hi", b"250 hello", b"250 sender fine"),
        (b"220 hi", b"250 hello", b"250 sender fine", b"250 recipient fine"),
        (b"220 hi", b"250 hello", b"421 too busy"),
        (b"220 hi", b"250 hello", b"250 fine", b"250 fine", b"451 no data now", b"250 reset"),
    ],
)
def test_a_conversation_that_ends_before_the_body_is_tried_again(
    door: MakeDoor, raw_server: RawServer, settings: Settings, lines: tuple[bytes, ...]
) -> None:
    use(settings, raw_server(talking(*lines)).port)
    assert failure(door("")).failing == "retry"


@pytest.mark.parametrize("last", [b"what?", b"25", b"5", b"100 half"])
def test_an_unreadable_answer_to_the_body_may_have_it(
    door: MakeDoor, raw_server: RawServer, settings: Settings, last: bytes
) -> None:
    lines = (b"220 hi", b"250 hello", b"250 fine", b"250 fine", b"354 go on", last)
    use(settings, raw_server(talking(*lines)).port)
    assert failure(door("")).failing == "maybe"


def test_a_server_that_fails_at_the_goodbye_has_taken_the_mail(
    door: MakeDoor, raw_server: RawServer, settings: Settings
) -> None:
    lines = (b"220 hi", b"250 hello", b"250 fine", b"250 fine", b"354 go on", b"250 taken")
    heard: list[bytes] = []
    use(settings, raw_server(talking(*lines, heard=heard)).port)
    door("").mail(message())
    assert [command[:4].lower() for command in heard][-2:] == [b"cont", b"quit"]


@pytest.mark.case("R04")
def test_a_server_that_drips_its_greeting_ends_when_the_watch_shuts_the_socket(
    door: MakeDoor, raw_server: RawServer, settings: Settings, sockets: Sockets
) -> None:
    dripping = threading.Event()

    def drip(client: socket.socket) -> None:
        client.settimeout(0.02)
        for byte in b"220 " + b"a" * 5000:
            client.sendall(bytes((byte,)))
            dripping.set()
            try:
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue

    use(settings, raw_server(drip).port)
    thread_id = threading.get_ident()
    watch = threading.Thread(target=lambda: dripping.wait(5) and sockets.shut(thread_id))
    watch.start()
    started = time.monotonic()
    error = failure(door("", timeout=60))
    watch.join()
    assert (error.failing, error.timed_out) == ("retry", True)
    assert time.monotonic() - started < 3


@pytest.mark.case("M02")
@pytest.mark.parametrize("field", ["subject", "to"])
def test_a_line_break_in_a_header_is_refused(door: MakeDoor, smtp: Server, field: str) -> None:
    bad = message()
    setattr(bad, field, "a\r\nBcc: x@example.com" if field == "subject" else ["a@example.com\r\nBcc: x@example.com"])
    assert failure(door(""), bad).failing == "rejected"
    assert smtp.entries() == []


def test_a_mail_without_recipient_is_refused(door: MakeDoor, smtp: Server) -> None:
    bad = message()
    bad.to = []
    assert failure(door(""), bad).failing == "rejected"


def test_another_back_end_of_django_is_used_as_it_is(door: MakeDoor) -> None:
    door("").mail(message())
    assert [sent.subject for sent in mail.outbox] == ["Hello"]


def test_what_another_back_end_raises_is_taken_as_uncertain(door: MakeDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any) -> None:
        raise smtplib.SMTPServerDisconnected("gone")

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
    assert failure(door("")).failing == "maybe"
