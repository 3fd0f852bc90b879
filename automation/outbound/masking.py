"""Removes secret values from every text that is kept or shown."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "•••"
SHORTEST = 4  # shorter values would blank out ordinary text
SHORTEST_BASE64 = 6  # characters that must be certain before a base64 form is told from chance


class Masker:
    """Masks the given values and their usual disguises: URL-encoded, JSON-escaped, base64, hexadecimal."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= SHORTEST:
                forms |= _forms(secret)
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Returns the text without any of the values; a text without them comes back as it is."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text


def _forms(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {
        secret,
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        json.dumps(secret)[1:-1],
        raw.hex(),
        raw.hex().upper(),
    }
    forms |= {form.lower() for form in forms if "%" in form}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {
            form for offset in range(3) if len(form := _inside(encode(bytes(offset) + raw), offset)) >= SHORTEST_BASE64
        }
    return forms | {quote(form, safe="") for form in forms}


def _inside(encoded: bytes, offset: int) -> str:
    """The characters of a base64 text that depend on the secret alone, `offset` bytes into a group of three."""
    text = encoded.decode("ascii")
    unfinished = text.count("=")
    start = (0, 2, 3)[offset]
    end = len(text) - unfinished - (1 if unfinished else 0)
    return text[start:end]
