"""Text made comparable: which letters count as equal, and which characters as blank, by a table of our own.

PostgreSQL's own `upper` and `lower` depend on the collation and version of the server, and full case folding changes
lengths. So one table decides, one character to one character; queries hand the same table to the database.
"""

import unicodedata
from functools import lru_cache


def _fold_of(character: str) -> str:
    """The small letter that stands for a character's case variants; itself where a mapping would change the length."""
    upper = character.upper()
    if len(upper) != 1:
        upper = character
    lower = upper.lower()
    return lower if len(lower) == 1 else character


def _table() -> dict[int, str]:
    """Whole blocks without case are passed over: every process makes this table when it starts."""
    found: dict[int, str] = {}
    for first in range(128, CASED_BELOW, 128):
        block = "".join(map(chr, range(first, first + 128)))
        if not block == block.lower() == block.upper():
            found |= {ord(one): folded for one in block if (folded := _fold_of(one)) != one}
    return found


CASED_BELOW = 0x20000
"""From here on there are no letters with case, only ideographs and the like."""

FOLDS: dict[int, str] = _table()
"""Code point of a character beyond ASCII → what it is compared as; ASCII is lowered as always."""
_ALL_FOLDS = FOLDS | {code: chr(code).lower() for code in range(65, 91)}
FOLD_FROM, FOLD_TO = "".join(map(chr, _ALL_FOLDS)), "".join(_ALL_FOLDS.values())
"""The same table, ASCII included, as two texts of equal length."""

BLANK = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""The characters of which a text may consist and still count as empty: those that `str.strip` takes away."""


@lru_cache(maxsize=128)  # many conditions look at one text of an event, which may be long
def fold(text: str) -> str:
    """The text in the form in which it is compared: NFC, each letter in one case, NFC again."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).translate(_ALL_FOLDS))


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space only."""
    return not text.strip()
