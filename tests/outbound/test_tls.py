"""The door and the mail keep their promises over TLS."""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.mail import EmailMessage
from outbound_types import MakeDoor, RawServer
from pytest_django import Settings

from automation.outbound import OutboundError, Sockets
from automation.outbound.addresses import installed
from automation.outbound.transport import session_for


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate for loopback."""

    path: Path

    def serving(self, handler: Callable[[ssl.SSLSocket], object]) -> Callable[[socket.socket], None]:
        """Put TLS before a handler of connections."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path)

        def handle(client: socket.socket) -> None:
            with context.wrap_socket(client, server_side=True) as secure:
                handler(secure)

        return handle


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(tz=UTC)
    places = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(places), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "loopback.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return Certificate(path)


def answer(client: socket.socket) -> None:
    """Take the whole request first: what is closed with something unread is reset, and the answer lost with it."""
    request = b""
    while not request.endswith(b"\r\n\r\n{}"):
        request += client.recv(65536)
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def trust(certificate: Certificate) -> None:
    """Let this thread's connections trust the certificate."""
    session_for(installed(True)).verify = str(certificate.path)


def failure(door: MakeDoor, url: str, **options: float) -> OutboundError:
    with pytest.raises(OutboundError) as caught:
        door(url, **options).post("there", json={})
    return caught.value


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_trusted_receiver_is_reached_by_its_name(
    door: MakeDoor, raw_server: RawServer, certificate: Certificate, host: str
) -> None:
    trust(certificate)
    port = raw_server(certificate.serving(answer)).port
    assert door(f"https://{host}:{port}/").post("there", json={}).status == 200


def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent(
    door: MakeDoor, raw_server: RawServer, certificate: Certificate
) -> None:
    received: list[bytes] = []
    port = raw_server(certificate.serving(lambda client: received.append(client.recv(100)))).port
    error = failure(door, f"https://127.0.0.1:{port}/")
    assert (error.failing, received) == ("retry", [])
    assert "secure connection" in str(error)


@pytest.mark.case("W01")
def test_a_certificate_must_be_that_of_the_name_and_not_of_the_address(
    door: MakeDoor, raw_server: RawServer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(certificate)
    port = raw_server(certificate.serving(answer)).port
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_more: found)
    assert failure(door, f"https://other.example:{port}/").failing == "rejected"  # not loopback by its text
    policy = installed(True)
    session_for(policy).verify = str(certificate.path)
    error = failure(door, "https://other.example:8443/")
    assert error.failing == "retry"


@pytest.mark.case("R04")
def test_a_handshake_that_never_ends_is_ended_by_the_watch(
    door: MakeDoor, raw_server: RawServer, sockets: Sockets
) -> None:
    greeted = threading.Event()

    def silent(client: socket.socket) -> None:
        client.recv(65536)
        greeted.set()
        client.recv(65536)

    thread_id = threading.get_ident()
    watch = threading.Thread(target=lambda: greeted.wait(5) and sockets.shut(thread_id))
    watch.start()
    started = time.monotonic()
    error = failure(door, f"https://127.0.0.1:{raw_server(silent).port}/", timeout=60)
    watch.join()
    assert (error.failing, error.timed_out) == ("retry", True)
    assert time.monotonic() - started < 2.5


def test_a_mail_goes_over_tls_and_a_silent_server_leaves_it_uncertain(
    door: MakeDoor, raw_server: RawServer, certificate: Certificate, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bytes] = []

    def talk(client: ssl.SSLSocket) -> None:
        for line in (b"220 hi", b"250 hello", b"250 fine", b"250 fine", b"354 go on"):
            client.sendall(line + b"\r\n")
            taken.append(client.recv(65536))

    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_SSL = "localhost", 0, True
    settings.EMAIL_PORT = raw_server(certificate.serving(talk)).port
    trusting = ssl.create_default_context(cafile=str(certificate.path))
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
    with pytest.raises(OutboundError) as caught:
        door("").mail(EmailMessage("Hi", "text", "a@example.com", ["b@example.com"]))
    assert caught.value.failing == "maybe"
    assert b"Subject: Hi" in taken[-1]
