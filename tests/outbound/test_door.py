"""One guarded door for everything that is posted to the outside."""

import gzip
import json
import socket
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from loopback_servers import Server
from outbound_types import MakeDoor, RawServer
from standardwebhooks.webhooks import Webhook

from automation.outbound import OutboundError, Sockets
from automation.outbound.addresses import host_allowed

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def some(client: socket.socket) -> bytes:
    """Whatever comes next."""
    received = client.recv(65536)
    if not received:
        raise ConnectionError("the other side is gone")
    return received


def read_request(client: socket.socket) -> bytes:
    """Read the head and the body of one request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += some(client)
    head, _blank, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += some(client)
    return head + b"\r\n\r\n" + body


def failure(door: Any, **options: Any) -> OutboundError:
    """The error of a post that fails."""
    with pytest.raises(OutboundError) as caught:
        door.post("there", json={"a": 1}, **options)
    return caught.value


def test_a_message_arrives_with_key_and_signature(door: MakeDoor, webhooks: Server) -> None:
    answer = door(webhooks.url, secret="whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0").post(
        "there", json={"text": "Grüße"}, key="key-1", sign="standard"
    )
    [entry] = webhooks.entries(1)
    assert answer.status == 200
    assert entry["key"] == "key-1"
    assert entry["body"] == {"text": "Grüße"}
    assert entry["headers"]["idempotency-key"] == "key-1"
    body = json.dumps({"text": "Grüße"}, ensure_ascii=False, separators=(",", ":"))
    Webhook("whsec_c2VjcmV0c2VjcmV0c2VjcmV0").verify(body, entry["headers"])


def test_two_secrets_give_two_signatures_while_one_replaces_the_other(door: MakeDoor, webhooks: Server) -> None:
    door(webhooks.url, secret="new-secret old-secret").post("there", json={}, sign="standard")
    [entry] = webhooks.entries(1)
    for secret in (b"new-secret", b"old-secret"):
        Webhook(secret).verify("{}", entry["headers"])


def test_signing_without_a_secret_is_refused_before_anything_is_sent(door: MakeDoor, webhooks: Server) -> None:
    for secret in ("", None, "whsec_é"):
        assert failure(door(webhooks.url, secret=secret), sign="standard").failing == "rejected"
    assert webhooks.entries() == []


def test_a_form_is_posted_below_the_endpoint(door: MakeDoor, webhooks: Server) -> None:
    door(webhooks.url + "/base/").post(
        "there", path="/../Accounts/a b?x#y/Messages.json", data={"To": "+49 1", "Body": "ä&b"}
    )
    [entry] = webhooks.entries(1)
    assert entry["path"] == "/base/Accounts/a%20b%3Fx%23y/Messages.json"
    assert entry["headers"]["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.fault(36)
def test_statuses_become_retry_or_rejected_and_the_wait_is_passed_on(door: MakeDoor, webhooks: Server) -> None:
    webhooks.prescribe(
        {"status": 503, "retry_after": 7}, 404, {"status": 302, "headers": {"Location": "/elsewhere"}}, 500
    )
    seen = [failure(door(webhooks.url)) for _ in range(4)]
    assert [(error.failing, error.retry_after) for error in seen] == [
        ("retry", 7.0),
        ("rejected", None),
        ("rejected", None),
        ("retry", None),
    ]
    assert len(webhooks.entries()) == 4
    assert seen[0].answer is not None
    assert seen[0].answer.status == 503


@pytest.mark.case("W01")
def test_a_redirect_is_never_followed(door: MakeDoor, webhooks: Server, raw_server: RawServer) -> None:
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {webhooks.url}/inside\r\nContent-Length: 0\r\n\r\n".encode()

    def redirect(client: socket.socket) -> None:
        read_request(client)
        client.sendall(moved)

    assert failure(door(raw_server(redirect).url)).failing == "rejected"
    assert webhooks.entries() == []


@pytest.mark.case("W01")
def test_loopback_is_refused_without_touching_the_network(door: MakeDoor, webhooks: Server) -> None:
    for endpoint in (webhooks.url, "https://127.0.0.1/", "https://localhost/"):
        error = failure(door(endpoint, allow_loopback=False))
        assert (error.failing, error.answer) == ("rejected", None)
    assert webhooks.entries() == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let names resolve to the given addresses, one list for each question; returns the names asked for."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *_rest: Any, **_more: Any) -> list[Any]:
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.case("W01")
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "168.63.129.16", "::1", "fec0::1", "::ffff:10.0.0.1"]
)
def test_a_name_that_resolves_to_a_private_address_is_refused(
    door: MakeDoor, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    resolving(monkeypatch, [address])
    error = failure(door("https://hooks.example.com/", allow_loopback=False))
    assert error.failing == "rejected"


@pytest.mark.case("W01")
def test_a_name_with_one_private_answer_among_public_ones_is_refused(
    door: MakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _self, address: connected.append(address))
    resolving(monkeypatch, ["93.184.216.34", "10.0.0.5"])
    assert failure(door("https://hooks.example.com/", allow_loopback=False)).failing == "rejected"
    assert connected == []


@pytest.mark.case("W01")
def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    door: MakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[Any] = []

    def connect(_self: socket.socket, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    asked = resolving(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    monkeypatch.setattr(socket.socket, "connect", connect)
    error = failure(door("https://hooks.example.com/", allow_loopback=False))
    assert (asked, connected) == (["hooks.example.com"], [("93.184.216.34", 443)])
    assert error.failing == "retry"
    second = failure(door("https://hooks.example.com/", allow_loopback=False))
    assert (len(connected), second.failing) == (1, "rejected")


def test_the_second_address_is_tried_when_the_first_refuses(
    door: MakeDoor, webhooks: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.socket.connect
    tried: list[str] = []

    def connect(self: socket.socket, address: Any) -> None:
        tried.append(address[0])
        if address[0] == "127.0.0.2":
            raise ConnectionRefusedError(111, "Connection refused")
        real(self, address)

    resolving(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    monkeypatch.setattr(socket.socket, "connect", connect)
    assert door(f"http://localhost:{webhooks.port}/").post("there", json={}).status == 200
    assert tried == ["127.0.0.2", "127.0.0.1"]


def test_plain_http_to_a_public_address_is_refused_when_connecting_too(
    door: MakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving(monkeypatch, ["93.184.216.34"])
    assert failure(door("http://localhost:8080/", allow_loopback=True)).failing == "rejected"


@pytest.mark.case("W01")
def test_proxy_settings_of_the_environment_are_ignored(
    door: MakeDoor, webhooks: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert door(webhooks.url).post("there", json={}).status == 200


def test_a_refused_connection_is_tried_again(door: MakeDoor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = failure(door(f"http://127.0.0.1:{port}/secret-path"))
    assert (error.failing, error.timed_out) == ("retry", False)
    assert "secret-path" not in str(error)
    assert "Connection refused" in str(error)


def test_a_name_that_does_not_resolve_is_tried_again(door: MakeDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_arguments: Any, **_more: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    error = failure(door("https://hooks.example.com/"))
    assert (error.failing, str(error)) == ("retry", "The name hooks.example.com can't be resolved.")


def test_a_connection_closed_after_the_request_may_have_been_received(door: MakeDoor, raw_server: RawServer) -> None:
    error = failure(door(raw_server(lambda client: read_request(client) and None).url))
    assert (error.failing, error.timed_out, error.answer) == ("maybe", False, None)


def test_no_answer_within_the_time_may_have_been_received(door: MakeDoor, webhooks: Server) -> None:
    webhooks.prescribe("hang")
    started = time.monotonic()
    error = failure(door(webhooks.url, timeout=0.4))
    assert (error.failing, error.timed_out) == ("maybe", True)
    assert time.monotonic() - started < 2


def shut_when_reading(sockets: Sockets, waiting: threading.Event) -> threading.Thread:
    """A watch that ends this thread's conversation as soon as the server says that it is under way."""
    thread_id = threading.get_ident()

    def watch() -> None:
        waiting.wait(5)
        sockets.shut(thread_id)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.case("R04")
@pytest.mark.fault(12)
def test_dripping_headers_end_when_the_watch_shuts_the_socket(
    door: MakeDoor, raw_server: RawServer, sockets: Sockets
) -> None:
    dripping = threading.Event()

    def drip(client: socket.socket) -> None:
        read_request(client)
        for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 10_000:
            client.sendall(bytes((byte,)))
            dripping.set()
            client.settimeout(0.05)
            try:
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue

    watch = shut_when_reading(sockets, dripping)
    started = time.monotonic()
    error = failure(door(raw_server(drip).url, timeout=60))
    watch.join()
    assert (error.failing, error.timed_out) == ("maybe", True)
    assert time.monotonic() - started < 3


@pytest.mark.case("R04")
@pytest.mark.parametrize("head", [b"Content-Length: 20000", b"Connection: close", b"Transfer-Encoding: chunked"])
def test_a_dripping_body_ends_when_the_watch_shuts_the_socket(
    door: MakeDoor, raw_server: RawServer, sockets: Sockets, head: bytes
) -> None:
    dripping = threading.Event()

    def drip(client: socket.socket) -> None:
        read_request(client)
        client.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        while True:
            client.sendall(b"1\r\na\r\n" if b"chunked" in head else b"a")
            dripping.set()
            client.settimeout(0.05)
            try:
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue

    watch = shut_when_reading(sockets, dripping)
    started = time.monotonic()
    answer = door(raw_server(drip).url, timeout=60).post("there", json={})
    watch.join()
    assert (answer.status, answer.complete) == (200, False)
    assert time.monotonic() - started < 3


@pytest.mark.case("R04")
def test_a_dripping_body_ends_at_the_deadline_without_a_watch(door: MakeDoor, webhooks: Server) -> None:
    webhooks.prescribe({"kind": "trickle", "part": "body", "body": "x" * 10_000, "every_ms": 20})
    started = time.monotonic()
    answer = door(webhooks.url, timeout=0.5).post("there", json={})
    assert (answer.status, answer.complete) == (200, False)
    assert time.monotonic() - started < 2


def test_a_thread_that_waits_for_nothing_has_nothing_to_shut(sockets: Sockets) -> None:
    assert not sockets.shut(threading.get_ident())


def test_the_time_left_covers_all_posts_of_a_step(door: MakeDoor, webhooks: Server) -> None:
    webhooks.prescribe("hang")
    one = door(webhooks.url, timeout=0.3)
    assert failure(one).failing == "maybe"
    late = failure(one)
    assert (late.failing, late.timed_out) == ("retry", True)


def test_a_body_that_unpacks_to_gigabytes_stays_packed(door: MakeDoor, raw_server: RawServer) -> None:
    bomb = gzip.compress(b"0" * 30_000_000)
    seen: list[bytes] = []

    def answer(client: socket.socket) -> None:
        seen.append(read_request(client))
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)

    found = door(raw_server(answer).url).post("there", json={})
    assert b"Accept-Encoding: identity" in seen[0]
    assert len(found.body) <= 64_000
    assert found.body_text.endswith("bytes that aren't text]")


@pytest.mark.case("W02")
def test_an_answer_of_a_megabyte_is_cut(door: MakeDoor, raw_server: RawServer) -> None:
    def answer(client: socket.socket) -> None:
        read_request(client)
        client.sendall(b"HTTP/1.1 200 OK\r\nX-Internal: 10.0.0.1\r\n\r\n" + b"a" * 1_000_000)

    found = door(raw_server(answer).url).post("there", json={})
    assert (len(found.body), len(found.body_text), found.complete) == (64_000, 1024, False)
    assert "x-internal" not in found.headers


@pytest.mark.case("P05")
def test_a_secret_that_the_receiver_echoes_is_masked(door: MakeDoor, raw_server: RawServer) -> None:
    secret = "tok_live_4f9a8b7c6d"

    def echo(client: socket.socket) -> None:
        request = read_request(client)
        client.sendall(
            b"HTTP/1.1 400 Bad\r\nX-Request-Id: " + secret.encode() + b"\r\nContent-Type: text/plain\r\n\r\n" + request
        )

    error = failure(
        door(raw_server(echo).url + "?token=query-secret-1", secret=secret), headers={"Authorization": secret}
    )
    assert error.answer is not None
    kept = f"{error} {error.answer.body_text} {error.answer.headers} {error.answer!r}"
    assert "Authorization" in kept
    assert secret not in kept
    assert "query-secret-1" not in kept


def test_a_header_can_not_be_broken_in_two(door: MakeDoor, raw_server: RawServer) -> None:
    seen: list[bytes] = []

    def answer(client: socket.socket) -> None:
        seen.append(read_request(client))
        client.sendall(OK)

    door(raw_server(answer).url).post(
        "there", json={}, headers={"X-Who": "a\r\nX-Evil: 1", "Host": "evil", "content-length": "0"}
    )
    assert b"\r\nX-Evil" not in seen[0]
    assert b"evil\r\n" not in seen[0]
    assert failure(door("http://127.0.0.1:9/"), headers={"X-Who": "日本"}).failing in ("rejected", "retry")


def test_cookies_of_one_answer_are_not_sent_with_the_next_request(door: MakeDoor, raw_server: RawServer) -> None:
    seen: list[bytes] = []

    def answer(client: socket.socket) -> None:
        for _ in range(2):
            seen.append(read_request(client))
            client.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: who=acme\r\nContent-Length: 2\r\n\r\nok")

    there = raw_server(answer).url
    door(there).post("there", json={})
    door(there).post("there", json={})
    assert len(seen) == 2
    assert b"who=acme" not in seen[1]


def test_a_connection_is_kept_unless_the_effect_may_happen_only_once(door: MakeDoor, raw_server: RawServer) -> None:
    clients: list[int] = []

    def answer(client: socket.socket) -> None:
        clients.append(client.fileno())
        while True:
            read_request(client)
            client.sendall(OK)

    there = raw_server(answer).url
    for reuse in (True, True, False, False):
        door(there).post("there", json={}, reuse=reuse)
    assert len(clients) == 3


def test_a_kept_connection_that_the_server_closed_is_replaced(door: MakeDoor, raw_server: RawServer) -> None:
    closed = threading.Event()

    def answer(client: socket.socket) -> None:
        read_request(client)
        client.sendall(OK)
        client.shutdown(socket.SHUT_RDWR)
        closed.set()

    there = raw_server(answer).url
    for _ in range(3):
        assert door(there).post("there", json={}).status == 200
        assert closed.wait(5)
        closed.clear()


def test_the_signature_carries_the_moment_of_sending(door: MakeDoor, webhooks: Server) -> None:
    door(webhooks.url, secret="plain").post("there", json={}, sign="standard")
    [entry] = webhooks.entries(1)
    moment = datetime.fromtimestamp(int(entry["headers"]["webhook-timestamp"]), tz=UTC)
    assert abs((datetime.now(tz=UTC) - moment).total_seconds()) < 5


def test_a_posted_message_costs_less_than_two_milliseconds(door: MakeDoor, webhooks: Server) -> None:
    there = door(webhooks.url, secret="plain", timeout=30)
    there.post("there", json={}, sign="standard")
    costs = []
    for _ in range(50):
        before = time.thread_time()
        there.post("there", json={"a": 1}, key="k", sign="standard")
        costs.append(time.thread_time() - before)
    assert sorted(costs)[25] < 0.002


@pytest.mark.parametrize(
    ("allowed", "goes"),
    [((), True), (("127.0.0.1",), True), (("api.example.com", "127.0.0.1"), True), (("api.example.com",), False)],
)
def test_only_the_allowed_hosts_of_a_connection_are_called(
    door: MakeDoor, raw_server: RawServer, allowed: tuple[str, ...], goes: bool
) -> None:
    def answer(client: socket.socket) -> None:
        read_request(client)
        client.sendall(OK)

    there = door(raw_server(answer).url, allowed_hosts=allowed)
    if goes:
        assert there.post("there", json={}).status == 200
        return
    with pytest.raises(OutboundError) as refused:
        there.post("there", json={})
    assert (refused.value.failing, "allowed hosts" in str(refused.value)) == ("rejected", True)


@pytest.mark.parametrize(
    ("host", "fits"),
    [("api.example.com", True), ("a.b.example.com", True), ("example.com", False), ("badexample.com", False)],
)
def test_a_leading_dot_allows_all_below_a_name(host: str, fits: bool) -> None:
    assert host_allowed(f"https://{host}/x", (".example.com",)) is fits
