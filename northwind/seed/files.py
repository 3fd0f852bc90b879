"""Reads seeded tenants and rules from JSON files."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SLUGS = ("acme", "contoso", "fabrikam")


def tenant_file(slug: str) -> dict[str, Any]:
    """A tenant with its people, groups, records, connections, and what has happened there."""
    found: dict[str, Any] = json.loads((HERE / "tenants" / f"{slug}.json").read_text(encoding="utf-8"))
    return found


def rules_of(slug: str) -> list[dict[str, Any]]:
    """The rules of a seeded tenant in their order, each with its `name` and `definition`."""
    return rules_in(HERE / "rules" / slug)


def rules_in(folder: Path) -> list[dict[str, Any]]:
    """The rules of a folder, in the order of the files' names, each with its `name` and `definition`."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
