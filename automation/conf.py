"""The engine's settings: defaults, units, and the checks that they fit together."""

import ipaddress
from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from django.conf import settings as django_settings


@dataclass(frozen=True, slots=True)
class Conf:
    """All settings of the engine; times in seconds. A Django setting AUTOMATION_<NAME> overrides the default."""

    threads: int = 8
    claim_batch: int = 8
    take: int = 4
    pump_budget: float = 600.0
    poll: float = 0.1
    match_batch: int = 200
    match_slice: float = 0.25
    bell: float = 60.0
    lease: float = 60.0
    beat: float = 15.0
    deadline: float = 40.0
    lost_limit: int = 5
    lost_alone: int = 2
    sweep: float = 10.0
    control_poll: float = 1.0
    retention: float = 3600.0  # between two rounds of a tenant; 0: only by command
    step_timeout: float = 10.0
    step_timeout_max: float = 30.0
    allow_loopback: bool = False
    allowed_networks: str = ""  # private networks that connections may lead to: "10.20.0.0/16, fd00:20::/32"
    # Switches of the lab and of tests: each turns a real protection off to show what it is for.
    loop_guard: bool = True
    loop_stop: int = 1000
    idempotency_keys: bool = True
    breakers: bool = True
    match_ahead: bool = True  # with all threads waiting for the outside, matchers are claimed all the same
    site: str = ""  # where people reach the pages, "https://desk.example.com": mails link to it; empty: no links
    # The demo shortens every delay by this factor; 1 leaves them alone.
    time_scale: float = 1.0

    @property
    def fence_margin(self) -> float:
        """How long before the end of a lease no further effect may start, in seconds."""
        return self.lease / 4

    @property
    def networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The private networks that are open to connections. Raises ValueError for what is no network."""
        return tuple(ipaddress.ip_network(one.strip()) for one in self.allowed_networks.split(",") if one.strip())

    @property
    def own_hosts(self) -> frozenset[str]:
        """The names under which this product is reached; one that begins with a dot stands for all below it, too."""
        named = [urlsplit(self.site).hostname or "", *django_settings.ALLOWED_HOSTS]
        return frozenset(host.lower() for host in named if host not in ("", "*", "localhost"))


def load() -> Conf:
    """The settings as they are now: read on each call, so that tests may override them."""
    given = {
        field.name: getattr(django_settings, f"AUTOMATION_{field.name.upper()}")
        for field in fields(Conf)
        if hasattr(django_settings, f"AUTOMATION_{field.name.upper()}")
    }
    return Conf(**given)


def problems(conf: Conf, *, queue_timeout: float, queue_retry: float) -> list[str]:
    """What does not fit together, one sentence each; empty when all is well (docs/operating.md)."""
    rules = [
        (queue_timeout < queue_retry, "the queue's timeout must be below its retry"),
        (
            conf.pump_budget + conf.deadline < queue_timeout,
            "pump budget and deadline must end before the queue's timeout",
        ),
        (conf.lease >= 4 * conf.beat, "the lease must be at least four beats"),
        (
            conf.lease - (conf.step_timeout_max + conf.lease / 12) > conf.beat,
            "the longest step must fit into the lease beside a beat",
        ),
        (conf.step_timeout_max < conf.deadline, "the longest step must end before the deadline"),
        (_are_networks(conf), "the allowed networks must be networks with commas between, such as 10.20.0.0/16"),
    ]
    return [message for holds, message in rules if not holds]


def _are_networks(conf: Conf) -> bool:
    try:
        return conf.networks is not None
    except ValueError:
        return False
