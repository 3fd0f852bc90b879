"""The key under which an outside effect is sent, the same for every attempt."""

import hashlib
import json


def idempotency_key(*, tenant_id: int, record_key: str, rule_id: int, event_id: int, path: str, epoch: int) -> str:
    """64 hexadecimal digits that name one effect of one step.

    Never holds time, chance or the number of the attempt: retries and replays keep it. Only "send again as new" raises
    the epoch.
    """
    parts = json.dumps([tenant_id, record_key, rule_id, event_id, path, epoch], separators=(",", ":"))
    return hashlib.sha256(parts.encode()).hexdigest()
