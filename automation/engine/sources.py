"""Says where the changes made here come from: who, by which door, and what caused them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from automation.core.automatic_mail import marked
from automation.core.causes import ROOT, Cause
from tenants.context import current_actor

BATCH_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event comes from: `source` is person, api, import, automation or schedule.

    `quiet`: an import that no rule runs for. `mail`: what is known of the mail that was received, see `receiving_mail`.
    """

    source: str
    actor: str
    actor_id: int | None
    batch: str
    cause: Cause
    quiet: bool = False
    mail: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What an event from here has in its facts beside what happened."""
        return ({"quiet": True} if self.quiet else {}) | ({"mail": dict(self.mail)} if self.mail else {})

    @property
    def merges_with(self) -> tuple[object, ...]:
        """What two changes must share to be one event: who, by which door, and the run, whichever of its steps."""
        cause = self.cause
        by = self.source, self.actor, self.actor_id, self.batch, self.quiet, self.mail
        return *by, cause.parent_event_id, cause.rule_id, cause.run_id


@dataclass(frozen=True, slots=True)
class _Told:
    """What the innermost context manager said; `actor` None leaves it to whoever acts."""

    source: str
    batch: str = ""
    cause: Cause = ROOT
    actor: str | None = None
    quiet: bool = False
    mail: tuple[tuple[str, str], ...] = ()


_told: ContextVar[_Told | None] = ContextVar("automation_source", default=None)


def current_origin() -> Origin:
    """The origin of a change made now. A person by default where a person acts, else the API."""
    actor, told = current_actor(), _told.get()
    if told is None:
        told = _Told("person" if actor.kind == "person" else "api")
    if told.actor is not None:
        return Origin(told.source, told.actor, None, told.batch, told.cause)
    return Origin(told.source, actor.name, actor.id, told.batch, told.cause, told.quiet, told.mail)


@contextmanager
def _telling(told: _Told) -> Iterator[None]:
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


@contextmanager
def importing(batch: str, *, rules: bool = True) -> Iterator[None]:
    """Changes inside belong to an import, named by its batch (1 to 80 characters; ValueError for another length).

    Without `rules` no rule runs for them, whatever the rules say; their events are kept and say so.
    """
    if not 0 < len(batch) <= BATCH_LENGTH:
        raise ValueError(f"The name of a batch has 1 to {BATCH_LENGTH} characters, not {len(batch)}.")
    with _telling(_Told("import", batch=batch, quiet=not rules)):
        yield


@contextmanager
def caused_by(cause: Cause, *, actor: str) -> Iterator[None]:
    """Changes inside are a rule's: `cause` continues its chain, `actor` is the rule's name for people."""
    with _telling(_Told("automation", cause=cause, actor=actor)):
        yield


@contextmanager
def receiving_mail(*, sender: str, mailbox: str, headers: Mapping[str, str]) -> Iterator[None]:
    """Changes inside come of a mail that was received: `sender` and `mailbox` (to whom) are plain addresses.

    Headers tell whether a machine sent it: then no rule that runs for these changes writes to the sender, unless the
    mailbox is an own address of the tenant that answers machines. Everything else runs as ever.
    """
    mail = {"from": sender[:320], "to": mailbox[:320], "automatic": marked(headers)}
    with _telling(_Told("api", mail=tuple(mail.items()))):
        yield


@contextmanager
def by_api(cause: Cause = ROOT) -> Iterator[None]:
    """Changes inside come through the API; with a `cause` where the call brought one back, whose chain goes on."""
    with _telling(_Told("api", cause=cause)):
        yield
