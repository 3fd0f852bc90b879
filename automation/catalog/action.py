"""What an action is: its kind, its parameters, the classes of its effect, and the four things it may be asked."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal

from automation.catalog.contexts import (
    CheckContext,
    Context,
    LocalContext,
    OutsideContext,
    PrepareContext,
    PreviewContext,
)
from automation.catalog.params import (
    ActionParams,
    ConnectionRef,
    FieldRef,
    GroupRef,
    MemberRef,
    TagList,
    Template,
)
from automation.core.footprints import Writing
from automation.core.spec import Retry
from automation.core.values import clean

__all__ = [
    "Action",
    "ActionParams",
    "CheckContext",
    "ConnectionRef",
    "Context",
    "Effect",
    "FieldRef",
    "GroupRef",
    "LocalContext",
    "MemberRef",
    "Outcome",
    "OutsideContext",
    "PrepareContext",
    "PreviewContext",
    "TagList",
    "Template",
    "Writing",
]


class Effect(StrEnum):
    """What is promised about an action's effect, whatever fails in between."""

    DB_LOCAL = "db_local"
    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one try ended; made by the class methods. `retry_after` is in seconds, `output` a JSON object."""

    state: Literal["done", "skipped", "retry", "rejected", "uncertain", "timeout"]
    output: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    error: str = ""
    reason: str = ""
    retry_after: float | None = None

    @classmethod
    def done(cls, output: dict[str, Any] | None = None, note: str = "") -> "Outcome":
        """It happened; `note` says what, in words ("no change")."""
        return cls("done", output=output or {}, note=note)

    @classmethod
    def skipped(cls, reason: str, note: str = "") -> "Outcome":
        """Nothing was to be done, and nothing was: a reason code such as opted_out."""
        return cls("skipped", reason=reason, note=note)

    @classmethod
    def retry(cls, error: str, retry_after: float | None = None) -> "Outcome":
        """It surely didn't happen, and may succeed later."""
        return cls("retry", error=error, retry_after=retry_after)

    @classmethod
    def rejected(cls, error: str, reason: str = "rejected") -> "Outcome":
        """It didn't happen and never will as asked: a permanent answer."""
        return cls("rejected", error=error, reason=reason)

    @classmethod
    def uncertain(cls, error: str) -> "Outcome":
        """It may have happened; the effect class decides what follows."""
        return cls("uncertain", error=error)

    @classmethod
    def timeout(cls, error: str) -> "Outcome":
        """No answer within the step's time; it may have happened."""
        return cls("timeout", error=error)

    def kept(self) -> dict[str, Any] | None:
        """What a step keeps of it: the output with the note; None where there is nothing."""
        return {**self.output, **({"note": self.note} if self.note else {})} or None

    def cleaned(self) -> "Outcome":
        """The same without the characters that no database keeps: the texts come from anywhere."""
        return replace(self, output=clean(self.output), note=clean(self.note), error=clean(self.error))


class Action:
    """Base of all actions: a subclass per kind and version, in a file of its own, made known by `register`.

    `effects`: the first is the default, others may be chosen in the step. `models`: the models whose records it
    works on, None for any. `needs_record`: whether the record must still be there; None means that local effects
    need it. `params` is always a validated `Params`. `default_retry` and `default_timeout` (seconds) hold where the
    step names none.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    label: ClassVar[Any]
    effects: ClassVar[tuple[Effect, ...]]
    Params: ClassVar[type[ActionParams]]
    models: ClassVar[frozenset[str] | None] = None
    needs_record: ClassVar[bool | None] = None
    default_retry: ClassVar[Retry] = Retry()
    default_timeout: ClassVar[float] = 10.0
    sends: ClassVar[Literal["", "mail", "message", "call"]] = ""

    @classmethod
    def name(cls) -> str:
        """The name under which steps and runs know it: "set_fields@1"."""
        return f"{cls.kind}@{cls.version}"

    @classmethod
    def is_local(cls) -> bool:
        """Whether its effect commits together with the step's outcome."""
        return cls.effects[0] is Effect.DB_LOCAL

    @classmethod
    def works_on_record(cls) -> bool:
        """Whether it makes no sense for a record that is deleted."""
        return cls.is_local() if cls.needs_record is None else cls.needs_record

    def prepare(self, params: Any, context: Any) -> Outcome | None:
        """What the database knows just before the effect, asked with a PrepareContext: an outcome ends the step."""
        return None

    def perform(self, params: Any, context: Any) -> Outcome:
        """The effect: a LocalContext for db_local, otherwise an OutsideContext in a thread without a database."""
        raise NotImplementedError

    def preview(self, params: Any, context: Any) -> dict[str, Any]:
        """What `perform` would do, as a JSON object for people, without doing it; with a PreviewContext."""
        return dict(params.model_dump(mode="json"))

    def check(self, params: Any, context: Any) -> list[tuple[str, str]]:
        """What is wrong beyond the schema, with a CheckContext: (JSON pointer below the parameters, message)."""
        return []

    def writes(self, params: Any) -> frozenset[str]:
        """The fields of the record that it may change; what loops are found from."""
        return frozenset()

    def writings(self, params: Any) -> tuple[Writing, ...]:
        """What the fields become, where that is known before it runs: plain values as in the parameters."""
        return tuple(Writing(name) for name in sorted(self.writes(params)))

    def creates(self, params: Any) -> tuple[str, tuple[Writing, ...]] | None:
        """The model of which it makes a new record, with the fields that it gives it; None where it makes none."""
        return None

    def sentence(self, params: Any) -> str:
        """What it does in the words of a person, for the sentence of a rule; a whole gettext message."""
        return str(self.label)
