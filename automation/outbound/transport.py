"""Connects only to addresses that were checked, and keeps every connection within reach of the watch."""

import socket
import threading
import time
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests_hardened import Config, Manager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.poolmanager import PoolManager

from automation.outbound.addresses import BadAddress, Policy, Target, parse_address, refused
from automation.outbound.sockets import current_flight, open_flight

CONNECT_TIMEOUT = 3.0  # seconds for all addresses of a name together
USER_AGENT = "Northwind-Automation/1"


class Guarded(HTTPConnection):
    """A connection that resolves its host once, judges every address, and connects to a judged one.

    A connection that is used again was judged when it was made and stays with that address, so a name that changes its
    answer in between reaches nothing new. The watch holds a second handle of the socket, which works during the TLS
    handshake and the headers too.
    """

    policy: Policy
    scheme: str
    handle: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        flight = current_flight()
        deadline = time.monotonic() + min(CONNECT_TIMEOUT, flight.remaining())
        sock = self._first_that_answers(self._addresses(), deadline)
        self.handle = sock.dup()
        flight.add(self.handle)
        sock.settimeout(flight.remaining())
        return sock

    def _addresses(self) -> list[tuple[socket.AddressFamily, Any]]:
        """All addresses of the host, each judged; one that may not be called makes the whole name suspect."""
        port = self.port or self.default_port
        try:
            found = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            reason = error if isinstance(error, socket.gaierror) else socket.gaierror(str(error))
            raise NameResolutionError(self.host, self, reason) from error
        target = Target(scheme=self.scheme, host=self.host, port=port, literal=None)
        for _family, _type, _protocol, _name, address in found:
            problem = refused(parse_address(str(address[0])), target, self.policy)
            if problem is not None:
                raise BadAddress(problem)
        return [(family, address) for family, _type, _protocol, _name, address in found]

    def _first_that_answers(self, found: list[tuple[socket.AddressFamily, Any]], deadline: float) -> socket.socket:
        problem: OSError | None = None
        for family, address in found:
            if (left := deadline - time.monotonic()) <= 0:
                break
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(left)
                sock.connect(address)
            except OSError as error:
                sock.close()
                problem = error
            else:
                return sock
        if problem is None or isinstance(problem, TimeoutError):
            raise ConnectTimeoutError(self, "timed out")
        raise NewConnectionError(self, problem.strerror or "failed") from problem

    def putrequest(self, *args: Any, **kwargs: Any) -> None:
        """Puts a connection that is used again under the watch of this conversation."""
        if self.handle is not None:
            current_flight().add(self.handle)
        super().putrequest(*args, **kwargs)

    def send(self, data: Any) -> None:
        """Sends, and says beforehand that from here on something may have arrived."""
        if self.sock is None:
            self.connect()
        current_flight().sent = True
        super().send(data)

    def close(self) -> None:
        """Closes; while an answer may still be read from the socket, the watch keeps its handle."""
        super().close()
        handle, self.handle = self.handle, None
        if handle is None:
            return
        flight = open_flight()
        if flight is None:
            handle.close()
        else:
            flight.leave(handle)


class Adapter(HTTPAdapter):
    """An adapter whose pools make guarded connections only."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        super().__init__(pool_connections=8, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        """Builds the pools on the guarded connections."""
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **kwargs)
        self.poolmanager.pool_classes_by_scheme = pool_classes(self._policy)


@lru_cache(maxsize=8)
def pool_classes(policy: Policy) -> dict[str, type[HTTPConnectionPool]]:
    """The pools for one policy, so that a connection made under one is never used under another."""

    class PlainConnection(Guarded):
        pass

    class SecureConnection(Guarded, HTTPSConnection):
        pass

    PlainConnection.policy = SecureConnection.policy = policy
    PlainConnection.scheme, SecureConnection.scheme = "http", "https"

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return {"http": PlainPool, "https": SecurePool}


class _Own(threading.local):
    def __init__(self) -> None:
        self.sessions: dict[Policy, requests.Session] = {}


_own = _Own()


def session_for(policy: Policy) -> requests.Session:
    """This thread's session: its connections are kept and used again."""
    session = _own.sessions.get(policy)
    if session is None:
        session = _own.sessions[policy] = new_session(policy)
    return session


def new_session(policy: Policy) -> requests.Session:
    """A session that follows no redirect, reads nothing from the environment and keeps no cookie."""
    config = Config(
        ip_filter_enable=False,  # the guarded connections judge, at the moment of connecting
        ip_filter_allow_loopback_ips=False,
        never_redirect=True,
        default_timeout=(CONNECT_TIMEOUT, CONNECT_TIMEOUT),
        user_agent_override=USER_AGENT,
    )
    session: requests.Session = Manager(config).get_session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.headers.clear()
    session.adapters.clear()
    adapter = Adapter(policy)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def forget_sessions() -> None:
    """Closes this thread's connections."""
    for session in _own.sessions.values():
        session.close()
    _own.sessions.clear()
