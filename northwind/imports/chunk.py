"""Turns some rows into records in the caller's transaction; what one row can't do stops no other."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from django.db import DatabaseError, DataError, IntegrityError, transaction
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from northwind.imports.columns import CellProblem, Column
from northwind.imports.files import Row
from northwind.imports.target import Target

CREATED, UPDATED, UNCHANGED, REJECTED = "created", "updated", "unchanged", "rejected"
REFUSED = (IntegrityError, DataError)
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL, and halves of pairs


@dataclass(slots=True)
class Draft:
    """A row on its way: its values by attribute, its words for other records, its key, and what became of it.

    `problems` are {"column": name, "place": the column's number, "message"}; place 0 is the row as a whole.
    """

    row: Row
    values: dict[str, Any] = field(default_factory=dict)
    words: dict[str, tuple[str, int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    key: Any = None
    key_place: int = 0
    outcome: str = ""
    record: int | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, message: str, *, column: str = "", place: int = 0) -> None:
        """The row is left out, for this and any other reason."""
        self.outcome = REJECTED
        self.problems.append({"column": column, "place": place, "message": str(message)})


Changed = tuple[Draft, Any, dict[str, Any]]  # the row, its record as it is, and the values that differ


@dataclass(slots=True)
class Importer:
    """How the rows of one file become records: `layout` is the column of each cell, `key` how they find theirs."""

    target: Target
    layout: Sequence[Column]
    key: str
    zone: ZoneInfo
    create_missing: bool = False
    _existing: dict[Any, list[Any]] = field(default_factory=dict)
    _new: list[tuple[Draft, Any]] = field(default_factory=list)
    _changed: list[Changed] = field(default_factory=list)

    def work(self, rows: Sequence[Row]) -> list[Draft]:
        """What became of each row, in their order. Runs in a transaction; what may be refused has its savepoint."""
        drafts = [self._draft(row) for row in rows]
        # Those last for which records may be made: only for rows that nothing else is wrong with.
        for column in sorted(self.layout, key=lambda one: one.name in self.target.make):
            if column.find is not None:
                self._resolve(column, drafts)
        self._existing = self._find({draft.key for draft in drafts if draft.key is not None})
        self._new, self._changed = [], []
        for draft in drafts:
            if not draft.outcome:
                self._take(draft)
        self._insert()
        self._write()
        return drafts

    def _draft(self, row: Row) -> Draft:
        draft, wanted = Draft(row), len(self.layout)
        if len(row.cells) != wanted:
            message = _("This row has %(cells)s cells, the header has %(wanted)s.")
            message %= {"cells": len(row.cells), "wanted": wanted}
            draft.refuse(message, place=min(len(row.cells), wanted) + 1)
            return draft
        for place, (column, cell) in enumerate(zip(self.layout, row.cells, strict=True), start=1):
            if text := cell.strip():
                self._read(draft, column, place, cell if column.verbatim else text)
        return draft

    def _read(self, draft: Draft, column: Column, place: int, text: str) -> None:
        try:
            value = column.read(_storable(text), self.zone)
        except CellProblem as problem:
            draft.refuse(str(problem), column=column.name, place=place)
            return
        draft.texts[column.name] = text
        if column.name == self.key:
            draft.key, draft.key_place = (value if self.key == "id" else text.lower()), place
        if column.find is not None:
            draft.words[column.name] = (value, place)
        elif column.attribute and column.attribute != "id":
            draft.values[column.attribute] = value

    def _resolve(self, column: Column, drafts: Sequence[Draft]) -> None:
        """Finds the records that a column names, for all rows at once."""
        naming = [draft for draft in drafts if column.name in draft.words]
        words = {draft.words[column.name][0] for draft in naming}
        if column.find is None or not words:
            return
        found = column.find(words)
        make = self.target.make.get(column.name) if self.create_missing else None
        if make is not None:
            wanting = [draft for draft in naming if not draft.outcome]
            missing = {draft.words[column.name][0]: draft.texts for draft in reversed(wanting)}
            if missing := {word: texts for word, texts in missing.items() if word not in found}:
                self._make(make, missing)
                found = column.find(words)
        for draft in naming:
            word, place = draft.words[column.name]
            ids = found.get(word, [])
            if len(ids) == 1:
                draft.values[column.attribute] = ids[0]
            else:
                message = _("More than one has this name.") if ids else str(column.missing)
                draft.refuse(message, column=column.name, place=place)

    def _make(self, make: Any, missing: Mapping[str, Mapping[str, str]]) -> None:
        try:
            with transaction.atomic():
                make(missing)
        except REFUSED:
            # Somebody else made one of them this moment, or one can't be: whoever is still missing is said so.
            return

    def _find(self, keys: set[Any]) -> dict[Any, list[Any]]:
        """The records of these keys, locked in the order of their ids."""
        found: dict[Any, list[Any]] = {}
        if not keys:
            return found
        rows = self.target.model.objects.select_for_update(no_key=True).order_by("pk")
        if self.key == "id":
            return {record.pk: [record] for record in rows.filter(pk__in=keys)}
        for record in rows.exclude(**{self.key: ""}).annotate(_key=Lower(self.key)).filter(_key__in=keys):
            found.setdefault(record._key, []).append(record)
        return found

    def _take(self, draft: Draft) -> None:
        if draft.key is not None and any(one.key == draft.key for one, _record in self._new):
            # An earlier row makes the record that this one is about.
            self._insert()
            self._existing |= self._find({draft.key})
        matches = self._existing.get(draft.key, []) if draft.key is not None else []
        if len(matches) > 1:
            draft.refuse(_("More than one record fits this."), column=self.key, place=draft.key_place)
        elif matches:
            self._update(draft, matches[0])
        elif draft.key is not None and self.key == "id":
            draft.refuse(_("There is no record of this number."), column="id", place=draft.key_place)
        else:
            self._prepare(draft)

    def _prepare(self, draft: Draft) -> None:
        """Puts a new record beside the others, to be inserted together."""
        for name in self.target.required:
            if name not in draft.values:
                place = next((number for number, one in enumerate(self.layout, start=1) if one.name == name), 0)
                draft.refuse(_("A new record needs this."), column=name, place=place)
        if not draft.outcome:
            self._new.append((draft, self.target.model(**{**self.target.defaults, **draft.values})))

    def _insert(self) -> None:
        new, self._new = self._new, []
        if not new:
            return
        try:
            with transaction.atomic():
                self.target.model.objects.bulk_create([record for _draft, record in new])
        except REFUSED:
            for draft, _record in new:
                self._insert_alone(draft)
            return
        for draft, record in new:
            draft.outcome, draft.record = CREATED, record.pk

    def _insert_alone(self, draft: Draft) -> None:
        record = self.target.model(**{**self.target.defaults, **draft.values})
        try:
            with transaction.atomic():
                record.save(force_insert=True)
        except REFUSED as error:
            draft.refuse(_refusal(error))
        else:
            draft.outcome, draft.record = CREATED, record.pk

    def _update(self, draft: Draft, record: Any) -> None:
        if any(one is record for _draft, one, _values in self._changed):
            # An earlier row changes the record that this one is about, too.
            self._write()
        if self.key != "id":
            draft.values.pop(self.key, None)  # it was found by it; how it is written there stays
        changed = {name: value for name, value in draft.values.items() if getattr(record, name) != value}
        draft.record, draft.outcome = record.pk, UPDATED if changed else UNCHANGED
        if changed:
            self._changed.append((draft, record, changed))

    def _write(self) -> None:
        """Changes records, those together that differ in the same fields."""
        changed, self._changed = self._changed, []
        alike: dict[tuple[str, ...], list[Changed]] = {}
        for one in changed:
            alike.setdefault(tuple(one[2]), []).append(one)
        for names, together in alike.items():
            before = [{name: getattr(record, name) for name in names} for _draft, record, _values in together]
            for _draft, record, values in together:
                _set(record, values)
            try:
                with transaction.atomic():
                    self.target.model.objects.bulk_update([record for _draft, record, _values in together], names)
            except REFUSED:
                for one, was in zip(together, before, strict=True):
                    _write_alone(*one, was)


def _write_alone(draft: Draft, record: Any, values: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    try:
        with transaction.atomic():
            record.save(update_fields=list(values))
    except REFUSED as error:
        _set(record, before)
        draft.refuse(_refusal(error))


def _storable(text: str) -> str:
    if UNSTORABLE.search(text):
        raise CellProblem(_("This holds a character that can't be stored."))
    return text


def _set(record: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(record, name, value)


def _refusal(error: DatabaseError) -> str:
    """Why the database refuses a row, by the name of its rule: its own words would repeat the row."""
    diagnosis = getattr(error.__cause__, "diag", None)
    name = getattr(diagnosis, "constraint_name", None) or getattr(diagnosis, "sqlstate", None) or "?"
    return _("The database refuses this row: %(name)s.") % {"name": name}
