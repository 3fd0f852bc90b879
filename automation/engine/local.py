"""The door through which local actions read and change the record, inside the transaction of their step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.catalog.automatable import Automatable
from automation.core.causes import Cause
from automation.core.facts import decode, encode, same
from automation.engine import capture
from automation.engine.changes import Reading
from automation.engine.saving import update_read
from automation.engine.sources import caused_by
from tenants.context import acting_for
from tenants.models import Group, Membership

STAYING = frozenset({"done", "skipped"})  # outcomes after which an action's changes are kept


class Refused(Exception):
    """An action asked for something that the record doesn't allow; the step is rejected with this text."""

    def __init__(self, message: str, reason: str = "rejected") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class RecordInHand:
    """A record under its lock: its present values by path, shared by all steps of a transaction."""

    entry: Automatable
    tenant_id: int
    id: int
    values: dict[str, Any] | None  # None: the record is gone
    rendering: float = 0.0  # seconds of processor time that templates have taken in this transaction


@dataclass(slots=True)
class LocalDoor:
    """The context of a local action. Changes are collected and written together by `flush`."""

    record: RecordInHand
    tenant_id: int
    record_key: str
    now: datetime
    zone: ZoneInfo
    actor_name: str
    cause: Cause
    original: dict[str, Any] = field(init=False)
    changes: dict[str, Any] = field(default_factory=dict)
    noted: bool = False
    written: bool = False  # the present action has written rows that nothing but a savepoint takes back

    def __post_init__(self) -> None:
        self.original = dict(self.record.values or {})

    @property
    def facts(self) -> Mapping[str, Any]:
        """The record's present values in their JSON forms, by path."""
        return self.record.values or {}

    @property
    def model(self) -> str:
        """The record's model, "helpdesk.ticket"."""
        return self.record.entry.name

    @property
    def record_id(self) -> int:
        """The record's id."""
        return self.record.id

    def current(self, path: str) -> Any:
        """The present raw value of one path."""
        return self.facts.get(path)

    def change(self, **fields: Any) -> dict[str, Any]:
        """Notes a change of named columns; returns what really changes, {field: [before, after]}."""
        values = self.record.values
        if values is None:
            raise Refused("The record is gone.", "record_gone")
        changed: dict[str, Any] = {}
        for path, value in fields.items():
            known = self.record.entry.fields.get(path)
            if known is None or not known.change:
                raise Refused(f"{path!r} can't be changed by a rule.", "unknown_field")
            raw = encode(value, known.type)
            if same(values.get(path), raw, known.type):
                continue
            changed[path] = [values.get(path), raw]
            self.changes[path] = values[path] = raw
        return changed

    def add_note(self, text: str) -> int:
        """Writes a note where the model keeps its notes; returns its id."""
        target, values = self.record.entry.note, self.record.values
        if target is None or values is None:
            raise Refused("This record has no place for notes.")
        note = target.model(
            tenant_id=self.tenant_id, **{f"{target.record}_id": self.record.id, target.text: text}, **target.defaults
        )
        # A plain queryset: the note's event is the record's, which `flush` writes with everything else.
        written = [one for one in target.model._meta.concrete_fields if not one.primary_key and not one.generated]
        rows = QuerySet(target.model)._insert(  # type: ignore[attr-defined]
            [note], fields=written, returning_fields=[target.model._meta.pk], using=DEFAULT_DB_ALIAS
        )
        self.noted = self.written = True
        return int(rows[0][0])

    def create(self, model: str, **fields: Any) -> int:
        """Writes a new record of an automatable model of the tenant; returns its id."""
        entry = registry.model(model)
        columns: dict[str, Any] = {}
        for path, value in fields.items():
            known = entry.fields.get(path)
            if known is None or not known.column:
                raise Refused(f"A {entry.label} has no field {path!r}.", "unknown_field")
            columns[entry.model._meta.get_field(known.orm_path).attname] = decode(value, known.type)  # type: ignore[union-attr]
            if known.type == "tags":
                columns[known.orm_path] = sorted(columns[known.orm_path])
        with acting_for(self.tenant_id), caused_by(self.cause, actor=self.actor_name):
            self.written = True
            record = entry.model(tenant_id=self.tenant_id, **columns)
            record.save()
        return int(record.pk)

    def group_id(self, name: str) -> int | None:
        """The id of the tenant's group of that name."""
        groups = Group.objects.filter(tenant_id=self.tenant_id, name=name)
        found: int | None = groups.values_list("pk", flat=True).first()
        return found

    def pick_member(self, group: str | None = None) -> int | None:
        """The next member by turns: fewest open records, then longest since last assigned; None when none is there."""
        members = Membership.objects.filter(
            tenant_id=self.tenant_id, is_active=True, is_away=False, user__is_active=True
        )
        if group is not None:
            inside = Group.objects.filter(tenant_id=self.tenant_id, name=group).values("members")
            members = members.filter(pk__in=inside)
        records: QuerySet[Any] = QuerySet(self.record.entry.model).filter(
            tenant_id=self.tenant_id, assignee__isnull=False
        )
        is_open: Q = getattr(self.record.entry.model, "OPEN", Q())
        loads = {
            row["assignee"]: (row["open"], row["last"])
            for row in records.filter(assignee__in=members.values("pk"))
            .values("assignee")
            .annotate(open=Coalesce(Count("pk", filter=is_open), 0), last=Max("assigned_at"))
        }
        never = datetime.min.replace(tzinfo=self.now.tzinfo)
        ranked = sorted(
            members.values_list("pk", flat=True),
            key=lambda pk: (loads.get(pk, (0, None))[0], loads.get(pk, (0, None))[1] or never, pk),
        )
        return ranked[0] if ranked else None

    def mark(self) -> "Mark":
        """Where an action begins."""
        self.written = False
        return Mark(dict(self.changes), dict(self.record.values or {}), dict(self.original), self.noted)

    def back_to(self, mark: "Mark") -> None:
        """Forgets what an action that failed has changed; its rows went with their savepoint."""
        self.changes, self.record.values, self.original, self.noted = mark

    def flush(self) -> None:
        """Writes what was changed, as one UPDATE of the named columns and one event of what the database made of it."""
        entry, values = self.record.entry, self.record.values
        if values is None or not (self.changes or self.noted):
            return
        typed = {
            entry.model._meta.get_field(entry.fields[path].orm_path).attname: self._column(path)  # type: ignore[union-attr]
            for path in self.changes
        }
        for one in entry.model._meta.concrete_fields:
            if typed and getattr(one, "auto_now", False):
                typed[one.attname] = self.now
        after = self._updated(typed) if typed else self._read()
        with caused_by(self.cause, actor=self.actor_name):
            capture.record_difference(
                entry,
                {self.record.id: Reading(self.tenant_id, self.original)},
                {self.record.id: Reading(self.tenant_id, after)},
            )
        self.record.values, self.original = dict(after), dict(after)
        self.changes, self.noted = {}, False

    def _read(self) -> dict[str, Any]:
        return capture.read_records(self.record.entry, [self.record.id], lock=False)[self.record.id]

    def _updated(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Writes the columns and answers all values as the database has them now, in one statement."""
        model = self.record.entry.model
        values = [(model._meta.get_field(name), None, value) for name, value in typed.items()]
        found = update_read(self.record.entry, QuerySet(model).filter(pk=self.record.id), values)
        if found is None:
            raise Refused("The record is gone.", "record_gone")
        return found[2].values

    def _column(self, path: str) -> Any:
        value = decode(self.changes[path], self.record.entry.fields[path].type)
        return sorted(value) if isinstance(value, frozenset) else value


class Mark(NamedTuple):
    """What a door had collected when an action began."""

    changes: dict[str, Any]
    values: dict[str, Any]
    original: dict[str, Any]
    noted: bool


def in_savepoint(door: LocalDoor, act: Callable[[], Outcome]) -> Outcome:
    """Performs an action of which nothing stays unless it succeeds."""
    with transaction.atomic():
        outcome = act()
        if outcome.state in STAYING:
            door.flush()
            connection.check_constraints()  # links are checked at the commit otherwise, too late to name the step
        else:
            transaction.set_rollback(True)
    return outcome


def take(entry: Automatable, tenant_id: int, ids: Sequence[int]) -> list[RecordInHand]:
    """Locks records for the rest of the transaction and reads their present values; one for each id."""
    found = capture.read_records(entry, ids, lock=True)
    return [RecordInHand(entry=entry, tenant_id=tenant_id, id=one, values=found.get(one)) for one in ids]
