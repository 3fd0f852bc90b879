"""Erases a person from what is stored about events and runs; what rules have decided, and when, stays."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.core.emptying import emptied_error, emptied_letter, literals
from automation.core.erasing import Needles, blank, linked_facts, marked, own_facts
from automation.core.states import RUN_STATES
from automation.engine.operate import Refused
from automation.engine.retention.elsewhere import Elsewhere
from automation.engine.retention.person import known_as, links_to, machine_words
from automation.engine.retention.terms import PAGE
from automation.models import Event
from automation.store import erasing, retention
from automation.store.erasing import LINKED, MENTIONED, OWN, Found, StoredEvent
from tenants import audit
from tenants.context import current_tenant
from tenants.models import Membership

BEYOND = 2**62
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Erased:
    """How many rows of each kind were changed, and what is left to a person.

    `live_runs` of theirs haven't ended: what a worker has in its hands is written afterwards, so erase once more when
    they have. `too_common` words weren't looked for. `rules` say one of the words in their definition, (id, name).
    """

    changed: dict[str, int] = field(default_factory=dict)
    live_runs: int = 0
    too_common: tuple[str, ...] = ()
    rules: tuple[tuple[int, str], ...] = ()


def erase(
    model: str, record: int, *, also: Collection[str] = (), dry_run: bool = False, progress: Progress | None = None
) -> Erased:
    """Takes a person's data out of the current tenant's events, traces, snapshots, dead letters, notices and the rest.

    The person is a record of a model with `personal` fields; it may be gone already. Events about it lose their facts,
    those about its records (a customer's tickets) their texts, with all that their runs were given and answered;
    everywhere else the names and addresses that it ever had are taken out, and whatever `also` names. The record itself
    is the host's to delete. Idempotent; a transaction a page, so call it outside one. With `dry_run` it only counts.

    Raises `UnknownKind` for a model that the catalog doesn't have, `Refused` for one that isn't a person's, and for a
    record that the tenant doesn't have and of which no event is left.
    """
    tenant_id = current_tenant()
    entry = registry.model(model)
    if not entry.personal:
        raise Refused(_("A %s isn't a person: nothing says what it is known by.") % entry.label)
    known = known_as(entry, record)
    work = _Erasing(tenant_id, Needles.of(known, also), dry_run, progress or _silent)
    work.strict = Needles.of(known, {*known, *also})
    work.model, work.record, work.links = entry.name, record, links_to(entry.name)
    if not (entry.model._default_manager.filter(pk=record).exists() or work.knows()):
        raise Refused(
            _("There is no %(model)s %(id)d, and nothing is left of one.") % {"model": entry.label, "id": record}
        )
    return _carried_out(work, f"{model}:{record}")


def erase_member(
    member_id: int, *, also: Collection[str] = (), dry_run: bool = False, progress: Progress | None = None
) -> Erased:
    """Takes the name and the addresses of a member of the current tenant out of the same rows; what they did stays.

    Events that they made say so no more. The audit keeps who did what. Raises `Membership.DoesNotExist`.
    """
    user = Membership.objects.select_related("user").get(pk=member_id).user
    known = {user.get_full_name(), user.email, user.get_username()}
    work = _Erasing(current_tenant(), Needles.of(known, also), dry_run, progress or _silent)
    work.user_id = user.pk
    return _carried_out(work, f"member:{member_id}")


def _carried_out(work: "_Erasing", whom: str) -> Erased:
    needles = work.needles
    work.events()
    if needles.words:
        work.runs()
    work.elsewhere()
    if not work.dry_run:
        audit.record("erase", whom, tenant_id=work.tenant_id, after=work.changed())
    return Erased(
        changed=work.changed(),
        live_runs=work.live,
        too_common=needles.too_common,
        rules=tuple(erasing.rules_with(work.tenant_id, needles.words)) if needles.words else (),
    )


def _silent(what: str, looked: int) -> None:
    """Nobody wants to know."""


class _Erasing:
    """One erasing on its way."""

    def __init__(self, tenant_id: int, needles: Needles, dry_run: bool, progress: Progress) -> None:
        self.tenant_id, self.needles = tenant_id, needles
        self.strict = needles  # with what is too common elsewhere, for runs that are the person's
        self.dry_run, self.progress = dry_run, progress
        # A record, with what refers to it; or a member's user, by whom events were made.
        self.model, self.record, self.user_id = "", 0, 0
        self.links: list[tuple[str, str]] = []
        self.touched: dict[str, set[int]] = {}
        self.live = 0

    def changed(self) -> dict[str, int]:
        """How many rows of each kind; one that was met twice counts once."""
        return {what: len(ids) for what, ids in self.touched.items() if ids}

    def _note(self, what: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.touched.setdefault(what, set()).update(row[0] for row in rows)

    def knows(self) -> bool:
        """Whether an event is about the record, or about one that refers to it, for which all are looked at."""
        if Event.objects.filter(model=self.model, record=self.record).exists():
            return True
        return any(event.how in (OWN, LINKED) for page in self._pages() for event in self._found(page))

    def _pages(self) -> Iterator[Sequence[int]]:
        after = 0
        while ids := retention.event_page(self.tenant_id, after=after, below=BEYOND, limit=20 * PAGE):
            yield from (ids[start : start + PAGE] for start in range(0, len(ids), PAGE))
            after = ids[-1]

    def events(self) -> None:
        """Events, and all that is stored of the runs of those that are the person's."""
        for page in self._pages():
            self._event_page(page)
            self.progress("events", len(page))

    def _event_page(self, ids: Sequence[int]) -> None:
        found = self._found(ids)
        if self.user_id:
            self._note("events", erasing.made_by(ids, self.user_id))
            if not self.dry_run:
                erasing.forget_maker(ids, self.user_id)
        if not found:
            return
        theirs = [event.id for event in found if event.how in (OWN, LINKED)]
        with transaction.atomic():
            runs = erasing.runs_of(theirs)
            self.live += erasing.lock_runs(runs) if runs else 0
            # Read again under their locks: retention may have removed the facts meanwhile.
            found = self._found([event.id for event in found], lock=True)
            self._write_events(found)
            self._write(erasing.rows_of(runs, event_ids=theirs, words=(), all_of_it=True), self._emptying(runs, found))
            others = [event.id for event in found if event.how == MENTIONED]
            self._write(
                erasing.rows_of([], event_ids=others, words=self.needles.words, all_of_it=False), self._scrubbed
            )

    def _found(self, ids: Sequence[int], *, lock: bool = False) -> list[StoredEvent]:
        return erasing.events(
            ids, model=self.model, record=self.record, links=self.links, words=self.needles.words, lock=lock
        )

    def _write_events(self, found: Sequence[StoredEvent]) -> None:
        changed = [(event.id, self._without(event), event.how == OWN) for event in found]
        different = [new for new, event in zip(changed, found, strict=True) if new[1] != event.facts]
        self._note("events", different)
        if different and not self.dry_run:
            erasing.write_events(different)

    def _without(self, event: StoredEvent) -> dict[str, Any]:
        if event.how == OWN:
            return own_facts(event.facts)
        if event.how == LINKED:
            fields = registry.models[event.model].fields
            texts = {path for path, item in fields.items() if item.type == "text"}
            links = {path for model, path in self.links if model == event.model}
            personal = {f"{link}.{path}" for link in links for path in registry.model(self.model).personal}
            return linked_facts(event.facts, personal=personal, texts=texts, needles=self.strict)
        scrubbed: dict[str, Any] = self.needles.scrub(event.facts)
        return scrubbed if scrubbed == event.facts else marked(event.facts, scrubbed)

    def runs(self) -> None:
        """What other runs have stored of the person's words."""
        for state in RUN_STATES:
            after = 0
            while ids := erasing.run_ids(self.tenant_id, state, after=after, limit=PAGE):
                self._run_page(ids)
                self.progress("runs", len(ids))
                after = ids[-1]

    def _run_page(self, ids: Sequence[int]) -> None:
        if not any(erasing.rows_of(ids, words=self.needles.words, all_of_it=False).parts()):
            return
        with transaction.atomic():
            erasing.lock_runs(ids)
            self._write(erasing.rows_of(ids, words=self.needles.words, all_of_it=False), self._scrubbed)

    def elsewhere(self) -> None:
        """What isn't a run: notices, the audit, errors of connections, imports and so on; and the staff's log."""
        look = Elsewhere(self.tenant_id, self.needles, self._note, self.dry_run)
        if self.needles.words:
            look.scrub()
        if self.model:
            look.log_of(registry.model(self.model).model, self.record)

    def _write(self, found: Found, without: Callable[[Found], Found]) -> None:
        cleaned = without(found)
        changed = Found(
            *(
                [new for new, old in zip(news, olds, strict=True) if new != old]
                for news, olds in zip(cleaned.parts(), found.parts(), strict=True)
            )
        )
        for what, rows in zip(("steps", "attempts", "dead letters"), changed.parts(), strict=True):
            self._note(what, rows)
        if not self.dry_run:
            erasing.write(changed)

    def _scrubbed(self, found: Found) -> Found:
        scrub = self.needles.scrub
        return Found(
            steps=[(key, kind, *map(scrub, values)) for key, kind, *values in found.steps],
            attempts=[(key, scrub(request), scrub(answer)) for key, request, answer in found.attempts],
            letters=[(key, scrub(snapshot), scrub(error)) for key, snapshot, error in found.letters],
        )

    def _emptying(self, runs: Sequence[int], events: Sequence[StoredEvent]) -> Callable[[Found], Found]:
        """All texts of what runs were given and answered, but what their rules say themselves and what names nobody."""
        scrub, by_id = self.strict.scrub, {event.id: event for event in events}
        words = {word for definition in erasing.definitions_of(runs) for word in literals(definition)}
        kept = {word for word in words | machine_words() if scrub(word) == word}

        def facts(event_id: Any, stored: dict[str, Any]) -> Any:
            event = by_id.get(event_id)
            return blank(stored, kept) if event is None else self._without(replace(event, facts=stored))

        def emptied(found: Found) -> Found:
            return Found(
                steps=[
                    (key, kind, blank(given, kept), _output(kind, output, kept), emptied_error(error, scrub))
                    for key, kind, given, output, error in found.steps
                ],
                attempts=[(key, blank(request), blank(answer)) for key, request, answer in found.attempts],
                letters=[
                    (key, emptied_letter(snapshot, facts, kept, scrub), emptied_error(error, scrub))
                    for key, snapshot, error in found.letters
                ],
            )

        return emptied


def _output(kind: str, output: Any, kept: Collection[str]) -> Any:
    """What a branch decided is none of the person's words."""
    return blank(output, kept) if kind == "action" else output
