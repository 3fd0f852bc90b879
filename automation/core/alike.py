"""Tells which errors are cases of one: what differs between them are numbers, keys and quoted values."""

import re

_PARTICULARS = re.compile(r"[0-9a-f]{16,}|\d+|'[^']*'|\"[^\"]*\"", re.IGNORECASE)


def pattern(error: str) -> str:
    """The error without its particulars: equal for two cases of one."""
    return _PARTICULARS.sub("#", error)
