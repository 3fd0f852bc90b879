"""Everything that leaves for the outside goes through here: allowed addresses, deadline, size cap, signature, key."""

from automation.outbound.addresses import BadAddress, Policy, check_url
from automation.outbound.answers import Answer, Judged, OutboundError, judge, retry_after
from automation.outbound.door import Outbound, Reachable
from automation.outbound.masking import Masker
from automation.outbound.sockets import Sockets
from automation.outbound.transport import forget_sessions

__all__ = [
    "Answer",
    "BadAddress",
    "Judged",
    "Masker",
    "Outbound",
    "OutboundError",
    "Policy",
    "Reachable",
    "Sockets",
    "check_url",
    "forget_sessions",
    "judge",
    "retry_after",
]
