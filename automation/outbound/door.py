"""The one guarded door to the outside: HTTP to a tenant's connections, mail to the installation's server."""

import json as json_module
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import requests
from django.core.mail import EmailMessage
from django.utils.translation import gettext as _
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from automation.outbound.addresses import BadAddress, Policy, check_target, host_allowed, installed, parse
from automation.outbound.answers import Answer, OutboundError, excerpt, judge, kept_headers
from automation.outbound.mail import send_mail
from automation.outbound.masking import Masker
from automation.outbound.reasons import transport_error
from automation.outbound.signing import signature_headers
from automation.outbound.sockets import Flight, Sockets
from automation.outbound.transport import CONNECT_TIMEOUT, new_session, session_for

BODY_CAP = 64_000  # bytes of an answer that are read
CHUNK = 8192
LONGEST_MASKED_QUERY = 8  # characters; shorter values of a query are no secrets
FIXED_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding", "connection"})


class Reachable(Protocol):
    """What the door needs of a connection: where it leads, and the secret to sign with and to mask."""

    @property
    def endpoint(self) -> str:
        """The URL that the tenant's admins entered."""

    @property
    def secret(self) -> str | None:
        """In clear; None when it can't be decrypted any more."""

    @property
    def allowed_hosts(self) -> Sequence[str]:
        """The hosts that may be called through it; none: the endpoint's alone."""


class Outbound:
    """HTTP for one step: it knows the tenant's connections by name, the step's key and the time that is left.

    `timeout` is in seconds and covers everything the step sends, from the first call on. `sockets` is the process's
    registry: its `shut(thread_id)` ends what this thread waits for.
    """

    def __init__(
        self,
        connections: Callable[[str], Reachable],
        *,
        allow_loopback: bool,
        key: str,
        timeout: float,
        sockets: Sockets,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connections = connections
        self._policy = policy or installed(allow_loopback)
        self._key = key
        self._timeout = timeout
        self._sockets = sockets
        self._clock = clock
        self._deadline: float | None = None

    def post(
        self,
        connection: str,
        *,
        path: str = "",
        json: Any = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        sign: Literal["standard"] | None = None,
        reuse: bool = True,
    ) -> Answer:
        """Posts JSON or a form to a connection and returns its answer, which is a 2xx.

        `path` is added to the endpoint. `key` goes along as Idempotency-Key. `sign="standard"` adds the headers of
        Standard Webhooks. `reuse=False` sends on a connection of its own: on a kept one, a receiver that closes it at
        the same moment can't be told from one that took the request. Raises OutboundError for everything else.
        """
        where = self._connections(connection)
        mask = Masker(_secrets(where))
        body, kind = _body(json, data)
        sent_headers = _headers(headers) | {"Content-Type": kind, "Accept": "*/*", "Accept-Encoding": "identity"}
        if key is not None:
            sent_headers["Idempotency-Key"] = key
        if sign is not None:
            sent_headers |= self._signature(where, body)
        url = self._url(where, path)
        return self._exchange(url, body=body, headers=sent_headers, mask=mask, reuse=reuse)

    def mail(self, message: EmailMessage) -> None:
        """Hands a mail to the installation's mail server. Raises OutboundError, `maybe` once it has the body."""
        send_mail(message, sockets=self._sockets, deadline=self.deadline())

    def deadline(self) -> float:
        """The moment, by `time.monotonic()`, at which this step's time is up; it runs from the first call."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeout
        return self._deadline

    def _signature(self, where: Reachable, body: bytes) -> dict[str, str]:
        try:
            return signature_headers(secret=where.secret or "", key=self._key, body=body, now=self._clock())
        except ValueError as error:
            raise OutboundError(str(error), failing="rejected") from None

    def _url(self, where: Reachable, path: str) -> str:
        """The URL to call, its text judged again: rows may be older than a rule. Raises OutboundError."""
        try:
            check_target(parse(where.endpoint), self._policy)
        except BadAddress as problem:
            raise OutboundError(str(problem), failing="rejected") from None
        url = _joined(where.endpoint, path)
        if not host_allowed(url, where.allowed_hosts):
            raise OutboundError(_("The host isn't one of the connection's allowed hosts."), failing="rejected")
        return url

    def _exchange(self, url: str, *, body: bytes, headers: dict[str, str], mask: Masker, reuse: bool) -> Answer:
        started = time.monotonic()
        session = session_for(self._policy) if reuse else new_session(self._policy)
        if not reuse:
            headers["Connection"] = "close"
        with self._sockets.flight(self.deadline()) as flight:
            try:
                if flight.over():
                    raise OutboundError("There was no time left to send.", failing="retry", timed_out=True)
                answer = self._send(session, flight, url=url, body=body, headers=headers, mask=mask, started=started)
            except BadAddress as problem:
                raise OutboundError(str(problem), failing="rejected") from None
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                raise transport_error(error, host=urlsplit(url).hostname or "", flight=flight) from None
            finally:
                if not reuse:
                    session.close()
        return self._judged(answer)

    def _send(
        self,
        session: requests.Session,
        flight: Flight,
        *,
        url: str,
        body: bytes,
        headers: dict[str, str],
        mask: Masker,
        started: float,
    ) -> Answer:
        timeout = (min(CONNECT_TIMEOUT, flight.remaining()), flight.remaining())
        response = session.post(url, data=body, headers=headers, stream=True, allow_redirects=False, timeout=timeout)
        with response:
            read, complete = _read(response.raw, flight)
        found = {name.lower(): value for name, value in response.headers.items()}
        return Answer(
            status=response.status_code,
            headers=kept_headers(found, mask),
            body_text=excerpt(read, found, mask),
            elapsed=time.monotonic() - started,
            complete=complete,
            body=read,
        )

    def _judged(self, answer: Answer) -> Answer:
        """Lets a 2xx through and raises OutboundError for anything else."""
        judged = judge(answer.status, answer.headers, now=datetime.fromtimestamp(self._clock(), tz=UTC))
        if judged.meaning == "ok":
            return answer
        raise OutboundError(judged.error, failing=judged.meaning, retry_after=judged.retry_after, answer=answer)


def _read(raw: BaseHTTPResponse, flight: Flight) -> tuple[bytes, bool]:
    """Reads at most 64 kB, undecoded, and says whether that was all.

    The status has come, so the outcome is known: a body that breaks off, drips past the deadline or never ends is cut.
    """
    read = bytearray()
    try:
        while not flight.over():
            chunk = raw.read1(CHUNK, decode_content=False)
            if not chunk:
                return bytes(read), not flight.shut  # a socket that was shut ends like a body without a length
            read += chunk
            if len(read) > BODY_CAP:
                break
    except (HTTPError, OSError, ValueError):
        pass
    raw.close()
    return bytes(read[:BODY_CAP]), False


def _body(json: Any, data: Mapping[str, str] | None) -> tuple[bytes, str]:
    if data is not None:
        return urlencode(data, errors="replace").encode("ascii"), "application/x-www-form-urlencoded"
    text = json_module.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace"), "application/json"


def _headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The caller's headers without line breaks and without those that the door keeps to itself."""
    given = {} if headers is None else headers
    return {name: " ".join(value.splitlines()) for name, value in given.items() if name.lower() not in FIXED_HEADERS}


def _joined(endpoint: str, path: str) -> str:
    """Adds a path below the endpoint's own; it can't leave the host, go up, or bring a query."""
    if not path:
        return endpoint
    parts = urlsplit(endpoint)
    steps = [quote(step, safe="") for step in map(unquote, path.split("/")) if step not in ("", ".", "..")]
    return urlunsplit((parts.scheme, parts.netloc, "/".join([parts.path.rstrip("/"), *steps]), parts.query, ""))


def _secrets(where: Reachable) -> list[str]:
    """All values that no stored text may contain: the secret, its parts, and long values of the URL's query."""
    secret = where.secret or ""
    parts = {secret, *secret.split(), *(part.removeprefix("whsec_") for part in secret.split())}
    query = [value for _name, value in parse_qsl(urlsplit(where.endpoint).query) if len(value) >= LONGEST_MASKED_QUERY]
    return [*parts, *query]
