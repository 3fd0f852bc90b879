"""Decides which web addresses may be called: scheme, port, host, and every network address that a name resolves to."""

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import idna
from django.utils.translation import gettext as _
from requests_hardened.ip_filter import EXTRA_BLOCKED_NET_RANGES

from automation import conf

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = frozenset({443, 8443})
LONGEST_URL = 2048
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
DENIED: tuple[Network, ...] = (
    *EXTRA_BLOCKED_NET_RANGES,
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's platform address
    ipaddress.ip_network("192.31.196.0/24"),  # AS112
    ipaddress.ip_network("192.52.193.0/24"),  # AMT
    ipaddress.ip_network("192.175.48.0/24"),  # AS112
    ipaddress.ip_network("fec0::/10"),  # site-local, withdrawn but still routed in old networks
    ipaddress.ip_network("::/96"),  # IPv4-compatible
    ipaddress.ip_network("::ffff:0:0:0/96"),  # IPv4-translated
    ipaddress.ip_network("2001::/23"),  # protocol assignments, Teredo among them
)
NUMBER = re.compile(r"(?:0x[0-9a-f]*|\d+)", re.ASCII)
LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".localdomain")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which addresses this installation may call. Both widenings are settings of the installation, never a tenant's.

    `allow_loopback`: http and any port too, on loopback addresses only. `allowed_networks`: private networks that the
    operator opens, by https on the usual ports. `own_hosts`: names of this product itself, which rules never call; one
    that begins with a dot stands for itself and all below it.
    """

    allow_loopback: bool = False
    allowed_networks: tuple[Network, ...] = ()
    own_hosts: frozenset[str] = frozenset()


def installed(allow_loopback: bool) -> Policy:
    """The policy of this installation's settings."""
    settings = conf.load()
    return Policy(allow_loopback, settings.networks, settings.own_hosts)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL points: `host` is an address or an ASCII name in lower case, without brackets and final dot."""

    scheme: str
    host: str
    port: int
    literal: Address | None


class BadAddress(ValueError):
    """The URL or the address behind it may not be called; the text says why and names no secret."""


def check_url(url: str, allow_loopback: bool, *, policy: Policy | None = None) -> str | None:
    """Says what is wrong with an endpoint when it is saved, or None. Asks no name server.

    A name that passes may still resolve to a private address: that is judged when the connection is made, each time.
    """
    rules = policy or installed(allow_loopback)
    try:
        target = parse(url)
        check_target(target, rules)
    except BadAddress as problem:
        return str(problem)
    return None


def host_allowed(url: str, allowed: Sequence[str]) -> bool:
    """Whether the host of a URL is one of the allowed ones; ".example.com" stands for all below it, none for any."""
    if not allowed:
        return True
    host = parse(url).host
    return any(host == one or (one.startswith(".") and host.endswith(one)) for one in allowed)


def _is_own(host: str, own: frozenset[str]) -> bool:
    return any(host == one.removeprefix(".") or (one.startswith(".") and host.endswith(one)) for one in own)


def parse(url: str) -> Target:
    """Reads a URL as strictly as the strictest client would. Raises BadAddress."""
    if len(url) > LONGEST_URL:
        raise BadAddress(_("The address is longer than 2,048 characters."))
    if "\\" in url or any(character.isspace() or not character.isprintable() for character in url):
        raise BadAddress(_("The address contains a space, a backslash or a control character."))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadAddress(_("This is not a web address.")) from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise BadAddress(_("The address must begin with https:// and name a host."))
    if "@" in parts.netloc:
        raise BadAddress(_("The address must not contain a user name or password."))
    host = _plain_host(parts.hostname)
    return Target(scheme=parts.scheme, host=host, port=_port(port, parts.scheme), literal=_literal(host))


def refused(address: Address, target: Target, policy: Policy) -> str | None:
    """Says why one resolved address may not be connected to for this target, or None."""
    plain = _unmapped(address)
    if plain.is_loopback:
        return None if policy.allow_loopback else _("The address belongs to this computer itself.")
    if (problem := _outside_rules(target)) is not None:
        return problem
    if any(plain.version == network.version and plain in network for network in policy.allowed_networks):
        return None
    if _is_private(plain):
        return _("The address belongs to a private or reserved network.")
    return None


def parse_address(text: str) -> Address:
    """Reads an address as a resolver returns it, with or without a zone."""
    return ipaddress.ip_address(text.partition("%")[0])


def check_target(target: Target, policy: Policy) -> None:
    """Judges what the text of a URL alone shows. Raises BadAddress."""
    if target.literal is not None:
        problem = refused(target.literal, target, policy)
    elif _is_own(target.host, policy.own_hosts):
        problem = _("The address is this product's own.")
    elif target.host == "localhost":
        problem = None if policy.allow_loopback else _("The address belongs to this computer itself.")
    else:
        problem = _private_name(target.host) or _outside_rules(target)
    if problem is not None:
        raise BadAddress(problem)


def _outside_rules(target: Target) -> str | None:
    if target.scheme != "https":
        return _("The address must begin with https://.")
    if target.port not in PORTS:
        return _("Only the ports 443 and 8443 may be called.")
    return None


def _private_name(host: str) -> str | None:
    if host.endswith(PRIVATE_SUFFIXES) or "." not in host:
        return _("The name belongs to a private network.")
    return None


def _port(port: int | None, scheme: str) -> int:
    if port == 0:
        raise BadAddress(_("This is not a web address."))
    return port or (443 if scheme == "https" else 80)


def _plain_host(hostname: str) -> str:
    """Normalises a host the way resolvers and browsers do, so that no other spelling slips past the checks."""
    host = unicodedata.normalize("NFKC", hostname).casefold()
    host = host.replace("\u3002", ".").removesuffix(".")  # the ideographic full stop separates labels too
    if ":" in host:
        return host
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except idna.IDNAError:
            raise BadAddress(_("The host is not a valid name.")) from None
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in host.split(".")):
        raise BadAddress(_("The host is not a valid name."))
    return host


def _literal(host: str) -> Address | None:
    """The address that a host spells out, in any of the forms the C library accepts; None for a name."""
    if ":" in host:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise BadAddress(_("The host is not a valid address.")) from None
        if address.scope_id is not None:
            raise BadAddress(_("The host is not a valid address."))
        return address
    if not NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        raise BadAddress(_("The host is not a valid address.")) from None


def _unmapped(address: Address) -> Address:
    """Reads ::ffff:a.b.c.d as the IPv4 address that it reaches."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_private(address: Address) -> bool:
    if address.is_private or address.is_multicast or address.is_reserved or not address.is_global:
        return True
    if address.version == 6 and address not in GLOBAL_UNICAST:
        return True
    return any(address.version == network.version and address in network for network in DENIED)
