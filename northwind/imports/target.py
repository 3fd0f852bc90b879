"""What a file is imported as: its columns, how its rows find records that exist, and what may be made beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from northwind.imports.columns import Column
from northwind.imports.files import FileProblem
from tenants.models import Group, Membership

Found = dict[str, list[int]]
Make = Callable[[Mapping[str, Mapping[str, str]]], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Records that files may be imported as.

    `keys` are the columns by which a row may find its record, `defaults` what a new one has that the file doesn't say.
    `make` gives for a column with `find` what makes the records that are missing: it is called with
    {word: {column: text of the row that named it}}.
    """

    kind: str
    model: Any
    columns: tuple[Column, ...]
    required: tuple[str, ...]
    keys: tuple[str, ...] = ("id",)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    make: Mapping[str, Make] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The records as rules call them."""
        return str(self.model._meta.label_lower)

    def layout(self, header: Sequence[str], *, key: str) -> list[Column]:
        """The column of each cell of a row; FileProblem for names that aren't known, come twice, or are missing.

        Names are compared without regard to case, spaces and underscores. `key` is how rows find their records.
        """
        known = {_plain(column.name): column for column in self.columns}
        if key != "id":
            known.pop("id", None)
        found: list[Column] = []
        for place, name in enumerate(header, start=1):
            column = known.get(_plain(name))
            if column is None:
                names = ", ".join(one.name for one in known.values())
                message = _("There is no column “%(name)s”. There are: %(names)s.")
                raise FileProblem(message % {"name": name[:40], "names": names}, line=1, column=place)
            if column in found:
                raise FileProblem(_("The column “%(name)s” comes twice.") % {"name": column.name}, line=1, column=place)
            found.append(column)
        names_found = {column.name for column in found}
        # With a key a file may speak of records that exist, and need not say what only new ones need.
        needed = {key} if key != "id" or "id" in names_found else {*self.required}
        for name in (column.name for column in self.columns if column.name in needed - names_found):
            raise FileProblem(_("The column “%(name)s” is missing.") % {"name": name}, line=1)
        return found


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "").replace("_", "").replace("-", "")


def by_lower(rows: "models.QuerySet[Any]", path: str, words: set[str]) -> Found:
    """The ids of the rows that have one of the words, in small letters, at a path."""
    lowered = rows.annotate(_word=Lower(path)).filter(_word__in=words).values_list("_word", "pk")
    return _together(lowered)


def members(words: set[str]) -> Found:
    """The active members by their e-mail address."""
    return by_lower(Membership.objects.filter(is_active=True, user__is_active=True).order_by(), "user__email", words)


def groups(words: set[str]) -> Found:
    """The groups by their name."""
    return _together(Group.objects.filter(name__in=words).values_list("name", "pk"))


def named(model: Any) -> Callable[[set[str]], Found]:
    """How rows of a model are found by their name."""

    def find(words: set[str]) -> Found:
        return _together(model.objects.filter(name__in=words).values_list("name", "pk"))

    return find


def _together(pairs: Any) -> Found:
    found: Found = {}
    for word, pk in pairs:
        found.setdefault(word, []).append(pk)
    return found
