"""Tells releases apart by what rules can be made of: workers of one release have the same fingerprint."""

import hashlib
import json

from automation.catalog import registry


def fingerprint() -> str:
    """Twelve hexadecimal digits, the same where actions, triggers, and the fields of records are the same."""
    models = {
        name: sorted((path, one.type, one.watch, one.change, one.target) for path, one in entry.fields.items())
        for name, entry in sorted(registry.models.items())
    }
    known = [sorted(registry.actions), sorted(registry.triggers), models]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:12]
