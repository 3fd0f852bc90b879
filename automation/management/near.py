"""Refuses names that nothing has, and lists the ones that were probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

from django.core.management.base import CommandError

LISTED = 5
ALIKE = 0.5


def unknown(what: str, name: str, known: Iterable[str], *, whose: str = "") -> CommandError:
    """The error for a name that isn't among those known: with the nearest, or the first of all where none is near.

    `whose` says what it isn't of, such as " of this tenant".
    """
    names = sorted(set(known))
    folded = {one.casefold(): one for one in reversed(names)}
    near = get_close_matches(name.casefold(), list(folded), n=LISTED, cutoff=ALIKE)
    meant = [folded[one] for one in near] or names[:LISTED]
    none = f"There is no {what} {name!r}{whose}."
    if not meant:
        return CommandError(none)
    more = ", …" if len(names) > len(meant) else ""
    return CommandError(f"{none} There is: {', '.join(meant)}{more}")
