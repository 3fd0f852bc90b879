"""Reads the seeded tenants and their rules from the JSON files of this package."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SLUGS = ("acme", "contoso", "fabrikam")


def tenant_file(slug: str) -> dict[str, Any]:
    """A tenant with its people, groups, records, connections, and what has happened there."""
    found: dict[str, Any] = json.loads((HERE / "tenants" / f"{slug}.json").read_text(encoding="utf-8"))
    return found


def rules_of(folder: str) -> list[dict[str, Any]]:
    """The rules of a folder in their order, each with its `name` and `definition`."""
    files = sorted((HERE / "rules" / folder).glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]
