"""The servers that stand for the outside are real processes that keep an honest ledger."""

import concurrent.futures
import http.client
import json
import signal
import smtplib
import socket
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from loopback_servers import Server, running


def post(
    server: Server, body: Any, *, headers: dict[str, str] | None = None, form: bool = False
) -> http.client.HTTPResponse:
    """Post on a connection of its own and read the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("POST", "/in", urlencode(body) if form else json.dumps(body), headers or {})
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def get(port: int, path: str = "/") -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def event(key: str = "", summary: str = "Urgent") -> dict[str, Any]:
    payload = {"summary": summary, "source": "desk", "severity": "critical"}
    return {"routing_key": "r", "event_action": "trigger", "payload": payload} | ({"dedup_key": key} if key else {})


def test_one_dedup_key_is_one_page_however_often_it_is_sent(tmp_path: Path) -> None:
    with running("pager", tmp_path) as pager:
        assert [post(pager, event(key)).status for key in ("a", "a", "b", "", "")] == [202] * 5
        assert [entry["shown"] for entry in pager.entries(5)] == [True, False, True, True, True]


def test_the_pager_refuses_what_the_real_one_refuses(tmp_path: Path) -> None:
    with running("pager", tmp_path) as pager:
        bad = [{}, {"routing_key": "r"}, {"routing_key": "r", "event_action": "trigger"}, []]
        assert [post(pager, body).status for body in bad] == [400] * 4
        assert not any(entry["shown"] for entry in pager.entries(4))


def test_a_seeded_quarter_of_accepted_pages_gets_no_answer(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "two"):
        with running("pager", tmp_path / name, "--drop", "0.25", "--seed", "7") as pager:
            for number in range(40):
                try:
                    assert post(pager, event(str(number))).status == 202
                except (http.client.RemoteDisconnected, ConnectionResetError):
                    continue
            runs.append([entry["dropped"] for entry in pager.entries(40)])
            assert all(entry["shown"] for entry in pager.entries())
    assert runs[0] == runs[1]
    assert 5 <= sum(runs[0]) <= 15


def test_answers_take_their_time_and_many_wait_side_by_side(tmp_path: Path) -> None:
    with running("pager", tmp_path, "--delay-ms", "200") as pager:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda number: post(pager, event(str(number))), range(16)))
        entries = pager.entries(16)
        assert max(entry["running"] for entry in entries) >= 8
        assert all(entry["t_end"] - entry["t_start"] >= 0.19 for entry in entries)
        assert max(entry["t_end"] for entry in entries) - min(entry["t_start"] for entry in entries) < 2


def test_connections_are_kept_alive(tmp_path: Path) -> None:
    with running("webhooks", tmp_path) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.connect()
        before = connection.sock
        for number in range(3):
            connection.request("POST", "/in", json.dumps({"n": number}), {"webhook-id": f"m{number}"})
            connection.getresponse().read()
        assert connection.sock is before
        connection.close()
        assert [entry["key"] for entry in server.entries(3)] == ["m0", "m1", "m2"]


@pytest.mark.fault(36)
def test_a_script_prescribes_the_answers_of_a_key_one_after_the_other(tmp_path: Path) -> None:
    with running("pager", tmp_path) as pager:
        pager.prescribe(503, {"status": 429, "retry_after": "7"}, "ok", match="alpha")
        answers = [post(pager, event("alpha")) for _ in range(4)]
        assert [answer.status for answer in answers] == [503, 429, 202, 202]
        assert answers[1].getheader("Retry-After") == "7"
        assert post(pager, event("beta")).status == 202
        assert [entry["shown"] for entry in pager.entries(5)] == [False, False, True, False, True]


def test_a_dropped_request_was_taken_and_a_hanging_one_ends_with_the_client(tmp_path: Path) -> None:
    with running("webhooks", tmp_path) as server:
        server.prescribe("drop", match="first")
        with pytest.raises(http.client.RemoteDisconnected):
            post(server, {"text": "first"}, headers={"webhook-id": "m1"})
        server.prescribe("hang", match="second")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.3)
        connection.request("POST", "/in", '{"text": "second"}')
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        assert post(server, {"text": "third"}).status == 200
        assert [(entry["answer"], entry["shown"]) for entry in server.entries(3)] == [
            (None, True),
            (None, False),
            (200, True),
        ]


def test_the_sms_service_wants_a_login_and_sends_whatever_it_takes(tmp_path: Path) -> None:
    with running("sms", tmp_path) as server:
        text = {"To": "+491", "From": "+492", "Body": "Hallo"}
        assert post(server, text, form=True).status == 401
        login = {"Authorization": "Basic QTpC"}
        assert post(server, {"To": "+491"}, form=True, headers=login).status == 400
        assert [post(server, text, form=True, headers=login).status for _ in range(2)] == [201, 201]
        assert [entry["shown"] for entry in server.entries(4)] == [False, False, True, True]
        assert server.entries()[-1]["body"] == text


def test_the_mail_sink_takes_mails_and_shows_them(tmp_path: Path) -> None:
    with running("smtp", tmp_path) as server:
        mail = EmailMessage()
        mail["Subject"], mail["Message-ID"], mail["From"], mail["To"] = "<b>Hi</b>", "<1@x>", "a@x.org", "b@x.org"
        mail.set_content("Text")
        mail.add_alternative("<p>Html</p>", subtype="html")
        with smtplib.SMTP("127.0.0.1", server.port, timeout=10) as client:
            client.send_message(mail)
            client.send_message(mail)
        first, second = server.entries(2)
        assert (first["key"], first["shown"], second["shown"]) == ("<1@x>", True, False)
        assert (first["body"]["text"].strip(), first["body"]["html"].strip()) == ("Text", "<p>Html</p>")
        _response, text = get(server.ports["page_port"])
        assert "&lt;b&gt;Hi&lt;/b&gt;" in text
        assert "<b>Hi" not in text


def test_every_server_has_a_page_that_escapes_what_arrived(tmp_path: Path) -> None:
    with running("pager", tmp_path) as pager:
        post(pager, event("k", summary="<script>alert(1)</script>"))
        post(pager, event("k2", summary="newest"))
        response, text = get(pager.port)
        assert "default-src 'none'" in str(response.getheader("Content-Security-Policy"))
        assert "<script>" not in text
        assert text.index("newest") < text.index("&lt;script&gt;alert(1)&lt;/script&gt;")
        assert get(pager.port, "/style.css")[0].getheader("Content-Type") == "text/css"


def test_one_page_shows_what_arrived_everywhere(tmp_path: Path) -> None:
    with running("pager", tmp_path) as pager, running("webhooks", tmp_path) as hooks:
        post(pager, event("k", summary="Urgent: <printer>"))
        post(hooks, {"text": "from a rule"})
        with running("page", tmp_path, "--ledger-dir", str(tmp_path)) as board:
            _response, text = get(board.port)
            assert "Urgent: &lt;printer&gt;" in text
            assert "from a rule" in text
            assert "http-equiv" not in text
            assert "http-equiv" in get(board.port, "/?follow=1")[1]
            with hooks.ledger.open("a") as ledger:
                ledger.write('{"half a li')
            assert get(board.port)[0].status == 200


def test_nonsense_closes_the_connection_and_harms_nobody(tmp_path: Path) -> None:
    with running("webhooks", tmp_path) as server:
        for nonsense in (
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            b"\x16\x03\x01" * 30_000,
        ):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
                client.sendall(nonsense)
                client.shutdown(socket.SHUT_WR)
                try:
                    assert client.recv(100) == b""
                except ConnectionResetError:
                    continue
        assert post(server, {"still": "here"}).status == 200


@pytest.mark.parametrize("name", ["pager", "smtp", "webhooks", "sms"])
def test_a_server_listens_on_loopback_only_and_ends_quietly_when_asked(tmp_path: Path, name: str) -> None:
    with running(name, tmp_path) as server, socket.create_connection(("127.0.0.1", server.port), timeout=5):
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == 0
