"""What a cell of a column may say, and how it becomes a value of a field."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _
from django_stubs_ext import StrPromise

from northwind.tags import TAG_LENGTH, normalise

YES, NO = frozenset({"true", "yes", "1", "t", "y"}), frozenset({"false", "no", "0", "f", "n"})
MOST_DIGITS = 18

Read = Callable[[str, ZoneInfo], Any]


class CellProblem(ValueError):
    """Why a cell can't be taken; never repeats what is written in it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a file may have: its name, and the attribute of the record that it fills ("" for none).

    `read(text, zone)` makes a value of the cell, or raises CellProblem. A column with `find` names another record by a
    word: `find(words)` answers the ids of those that each word may mean, in one query. `missing` says what isn't there.
    """

    name: str
    attribute: str
    read: Read
    find: Callable[[set[str]], dict[str, list[int]]] | None = None
    missing: "StrPromise | str" = ""
    verbatim: bool = False  # long texts keep the white space around them


def field(model: type[models.Model], name: str) -> Column:
    """A column that fills the field of the same name."""
    of = model._meta.get_field(name)
    return Column(name, name, _reader(of), verbatim=isinstance(of, models.TextField))


def email(text: str, zone: ZoneInfo) -> str:
    """An address as it is compared: in small letters."""
    return text.lower()


def word(text: str, zone: ZoneInfo) -> str:
    """A name as it is written."""
    return text


def number(text: str, zone: ZoneInfo) -> int:
    """The number of a record."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= MOST_DIGITS):
        raise CellProblem(_("This isn't the number of a record."))
    return int(text)


def _reader(of: Any) -> Read:
    if of.choices:
        return _choice(of)
    if isinstance(of, ArrayField):
        return _tags
    if isinstance(of, models.BooleanField):
        return _boolean
    if isinstance(of, models.DateTimeField):
        return _moment
    return _plain(of)


def _plain(of: Any) -> Read:
    def read(text: str, zone: ZoneInfo) -> Any:
        try:
            return of.clean(text, None)
        except ValidationError as error:
            raise CellProblem(" ".join(_message(one, of) for one in error.error_list)) from error

    return read


def _message(error: ValidationError, of: Any) -> str:
    """What is wrong, without the value: rows of people don't belong into reports."""
    if error.code == "max_length":
        return _("This has more than %(longest)s characters.") % {"longest": of.max_length}
    if error.code == "invalid" and isinstance(of, models.EmailField):
        return _("This isn't an e-mail address.")
    if isinstance(of, models.DecimalField | models.IntegerField):
        return _("This isn't a number that fits here.")
    return _("This doesn't fit here.")


def _choice(of: Any) -> Read:
    by_word: dict[str, Any] = {}
    for value, label in of.flatchoices:
        by_word |= {str(value).casefold(): value, str(label).casefold(): value}

    def read(text: str, zone: ZoneInfo) -> Any:
        if text.casefold() not in by_word:
            values = ", ".join(str(value) for value, _label in of.flatchoices)
            raise CellProblem(_("This is none of: %(values)s.") % {"values": values})
        return by_word[text.casefold()]

    return read


def _tags(text: str, zone: ZoneInfo) -> list[str]:
    tags = normalise(text.replace(";", ",").split(","))
    if any(len(tag) > TAG_LENGTH for tag in tags):
        raise CellProblem(_("A tag has at most %(longest)s characters.") % {"longest": TAG_LENGTH})
    return tags


def _boolean(text: str, zone: ZoneInfo) -> bool:
    if text.casefold() in YES | NO:
        return text.casefold() in YES
    raise CellProblem(_("This is neither yes nor no."))


def _moment(text: str, zone: ZoneInfo) -> datetime:
    """A moment; without an offset it is one of the tenant's zone, a day alone its beginning."""
    try:
        moment = parse_datetime(text)
        if moment is None and (day := parse_date(text)) is not None:
            moment = datetime(day.year, day.month, day.day, tzinfo=zone)
    except ValueError:
        moment = None
    if moment is None or not 1900 <= moment.year <= 2200:
        raise CellProblem(_("This isn't a time such as 2026-03-02T09:00:00Z."))
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
