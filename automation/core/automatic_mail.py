"""Tells mail that a machine sent from mail that a person wrote, by its headers: nobody answers a machine."""

from collections.abc import Mapping

NO = "no"  # RFC 3834: what a person sends says so, or says nothing
MACHINES = frozenset({"bulk", "junk", "list", "auto_reply"})
MARKS = ("x-autoreply", "x-autorespond", "x-auto-response-suppress", "list-id", "list-unsubscribe")


def marked(headers: Mapping[str, str]) -> str:
    """The header by which a mail is automatic, as "Auto-Submitted: auto-replied"; "" for a person's mail."""
    given = {name.lower(): (name, value.strip()) for name, value in headers.items()}
    for name, shown in _found(given):
        return f"{given[name][0]}: {shown}"[:200]
    return ""


def _found(given: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    submitted = _value(given, "auto-submitted")
    found = [("auto-submitted", submitted)] if submitted and submitted.lower().partition(";")[0].strip() != NO else []
    found += [("precedence", word)] if (word := _value(given, "precedence")).lower() in MACHINES else []
    found += [("return-path", path)] if (path := _value(given, "return-path")) == "<>" else []
    kind = _value(given, "content-type")
    found += [("content-type", "multipart/report")] if kind.lower().startswith("multipart/report") else []
    return found + [(name, _value(given, name)) for name in MARKS if name in given]


def _value(given: Mapping[str, tuple[str, str]], name: str) -> str:
    return given[name][1] if name in given else ""


def base(address: str) -> str:
    """An address as two are compared: in lower case, without a "+suffix"."""
    local, _at, domain = address.strip().casefold().rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"
