"""The door through which local actions read and change the record, inside the transaction of their step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.causes import Cause
from automation.core.facts import decode, encode, same
from automation.engine import capture
from automation.engine.sources import caused_by
from tenants.context import acting_for
from tenants.models import Group, Membership


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
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

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
            self.before.setdefault(path, values.get(path))
            self.after[path] = values[path] = raw
        return changed

    def add_note(self, text: str) -> int:
        """Writes a note where the model keeps its notes; returns its id."""
        target, values = self.record.entry.note, self.record.values
        if target is None or values is None:
            raise Refused("This record has no place for notes.")
        note = target.model(tenant_id=self.tenant_id, **{f"{target.record}_id": self.record.id, target.text: text}, **target.defaults)
        written = [one for one in target.model._meta.concrete_fields if not one.primary_key and not one.generated]
        rows = target.model._base_manager.all()._insert(  # type: ignore[attr-defined]
            [note], fields=written, returning_fields=[target.model._meta.pk], using=None
        )
        for path, known in self.record.entry.fields.items():
            if known.counts and self._counts(known.orm_path, target.model):
                self.before.setdefault(path, values.get(path))
                self.after[path] = values[path] = (values.get(path) or 0) + 1
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
            record = entry.model(tenant_id=self.tenant_id, **columns)
            record.save()
        return int(record.pk)

    def group_id(self, name: str) -> int | None:
        """The id of the tenant's group of that name."""
        found: int | None = Group.objects.filter(tenant_id=self.tenant_id, name=name).values_list("pk", flat=True).first()
        return found

    def pick_member(self, group: str | None = None) -> int | None:
        """The next member by turns: fewest open records, then longest since last assigned; None when none is there."""
        members = Membership.objects.filter(tenant_id=self.tenant_id, is_active=True, is_away=False, user__is_active=True)
        if group is not None:
            inside = Group.objects.filter(tenant_id=self.tenant_id, name=group).values("members")
            members = members.filter(pk__in=inside)
        records = self.record.entry.model._base_manager.filter(tenant_id=self.tenant_id, assignee__isnull=False)
        is_open: Q = getattr(self.record.entry.model, "OPEN", Q())
        loads = {
            row["assignee"]: (row["open"], row["last"])
            for row in records.filter(assignee__in=members.values("pk")).values("assignee").annotate(
                open=Coalesce(Count("pk", filter=is_open), 0), last=Max("assigned_at")
            )
        }
        never = datetime.min.replace(tzinfo=self.now.tzinfo)
        ranked = sorted(
            members.values_list("pk", flat=True),
            key=lambda pk: (loads.get(pk, (0, None))[0], loads.get(pk, (0, None))[1] or never, pk),
        )
        return ranked[0] if ranked else None

    def flush(self) -> None:
        """Writes what was changed, as one UPDATE of the named columns and one event."""
        values = self.record.values
        if not self.after or values is None:
            return
        model = self.record.entry.model
        columns = {self.record.entry.fields[path].column: raw for path, raw in self.after.items()}
        typed = {
            model._meta.get_field(known.orm_path).attname: self._column(path)  # type: ignore[union-attr]
            for path, known in self.record.entry.fields.items()
            if path in self.after and known.column
        }
        for one in model._meta.concrete_fields:
            if columns and getattr(one, "auto_now", False):
                typed[one.attname] = self.now
        if typed:
            # A plain queryset: that of a watched model would capture the change a second time.
            QuerySet(model).filter(pk=self.record.id, tenant_id=self.tenant_id).update(**typed)
        capture.write_change(
            self.record.entry,
            self.tenant_id,
            self.record.id,
            before=self.before,
            after=self.after,
            snapshot=values,
            cause=self.cause,
            actor=self.actor_name,
        )
        self.before, self.after = {}, {}

    def _column(self, path: str) -> Any:
        value = decode(self.after[path], self.record.entry.fields[path].type)
        return sorted(value) if isinstance(value, frozenset) else value

    def _counts(self, orm_path: str, model: Any) -> bool:
        relation = self.record.entry.model._meta.get_field(orm_path.partition("__")[0])
        return getattr(relation, "related_model", None) is model


def take(entry: Automatable, tenant_id: int, record_id: int) -> RecordInHand:
    """Locks the record for the rest of the transaction and reads its present values."""
    found = capture.read_records(entry, [record_id], lock=True)
    return RecordInHand(entry=entry, tenant_id=tenant_id, id=record_id, values=found.get(record_id))
