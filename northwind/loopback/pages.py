"""The pages that show what arrived, newest first; every value is escaped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

STYLE_PATH = "/style.css"
LONGEST_TEXT = 600
REFRESH = 3  # seconds, on the page that follows along
STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --faint: #57606a; --accent: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --faint: #9198a1; --accent: #6cb6ff } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 } a { color: var(--accent) } p { color: var(--faint); margin-top: .25rem }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line) }
th { font-size: .8125rem; color: var(--faint) } td.what { overflow-wrap: anywhere; white-space: pre-line }
td.when, td.key { white-space: nowrap; font-variant-numeric: tabular-nums }
td.key { font-family: ui-monospace, monospace }
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: when (seconds since 1970), where it arrived, what in words, its key, and what was answered."""

    at: float
    where: str
    what: str
    key: str
    answer: str


def receiver(title: str, rows: Sequence[Row]) -> str:
    """The page of one server."""
    return _document(title, f"{len(rows)} newest requests, newest first.", rows, follow=False)


def board(rows: Sequence[Row], *, follow: bool) -> str:
    """The page of all servers together; `follow` renews it by itself."""
    link = '<a href="/">Stop renewing</a>' if follow else f'<a href="/?follow=1">Renew every {REFRESH} seconds</a>'
    return _document(
        "What arrived outside", f"Pages, mails, webhooks and SMS, newest first. {link}", rows, follow=follow
    )


def row_of(where: str, entry: Mapping[str, Any]) -> Row:
    """A line for an entry of a ledger."""
    return Row(
        at=float(entry.get("t_start") or 0),
        where=where,
        what=_words(where, entry.get("body"))[:LONGEST_TEXT],
        key=str(entry.get("key") or "")[:12],
        answer=_answer(entry),
    )


def _words(where: str, body: Any) -> str:
    if not isinstance(body, dict):
        return str(body)
    if where == "pager":
        payload = body.get("payload")
        return str(payload.get("summary", "")) if isinstance(payload, dict) else ""
    if where == "smtp":
        return f"To {', '.join(map(str, body.get('to') or ()))}: {body.get('subject', '')}\n{body.get('text', '')}"
    if where == "sms":
        return f"To {body.get('To', '')}: {body.get('Body', '')}"
    return json.dumps(body, ensure_ascii=False)


def _answer(entry: Mapping[str, Any]) -> str:
    if entry.get("dropped"):
        return (
            "taken, connection closed without an answer"
            if entry.get("shown")
            else "connection closed without an answer"
        )
    return f"{entry.get('answer')}" if entry.get("shown") else f"{entry.get('answer')}, nothing new"


def _document(title: str, lead: str, rows: Sequence[Row], *, follow: bool) -> str:
    renew = f'<meta http-equiv="refresh" content="{REFRESH}">' if follow else ""
    lines = "".join(map(_line, rows)) or '<tr><td colspan="5">Nothing has arrived yet.</td></tr>'
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">{renew}
<title>{escape(title)}</title><link rel="stylesheet" href="{STYLE_PATH}"></head>
<body><main><h1>{escape(title)}</h1><p>{lead}</p>
<table><thead><tr><th scope="col">When (UTC)</th><th scope="col">Where</th><th scope="col">What</th>
<th scope="col">Key</th><th scope="col">Answer</th></tr></thead><tbody>{lines}</tbody></table></main></body></html>"""


def _line(row: Row) -> str:
    when = datetime.fromtimestamp(row.at, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
    return (
        f'<tr><td class="when">{when}</td><td>{escape(row.where)}</td><td class="what">{escape(row.what)}</td>'
        f'<td class="key">{escape(row.key)}</td><td>{escape(row.answer)}</td></tr>'
    )
