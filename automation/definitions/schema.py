"""The JSON of a definition as pydantic models: one schema for the builder, the API, import and the engine."""

import json
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    field_validator,
)

from automation.core.backoff import MAX_ATTEMPTS
from automation.core.calendars import Span
from automation.core.errors import DefinitionError, Problem
from automation.definitions.guards import check_size, double_ids, load_json, not_available, over_limits
from automation.definitions.pointers import TAG, problems_of
from automation.definitions.tree import GROUP_MODES, give_ids, parts

__all__ = ["Definition", "load_json", "parse", "problems_of"]

LONGEST_DAYS = 400
LONGEST_TIMEOUT = 30
MOST_RUNS = 1000

Identity = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Note = Annotated[str, StringConstraints(max_length=2000)]


class Part(BaseModel):
    """Base of every part: strict types, no unknown names."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


def _duration(text: str, *, exact: bool = False) -> str:
    try:
        span = Span.parse(text)
    except ValueError:
        message = _("“%(text)s” is not a duration such as PT30M, P1D or P1M")
        raise ValueError(message % {"text": text[:40]}) from None
    if not span.at_most(days=LONGEST_DAYS):
        raise ValueError(_("a duration is at most %(days)s days") % {"days": LONGEST_DAYS})
    if exact and not span.is_exact:
        raise ValueError(_("only hours, minutes and seconds are allowed here"))
    return text


class LeafPart(Part):
    """One comparison of a field with a value, or with another field."""

    id: Identity
    field: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    op: str
    value: Any = None
    value_of: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None

    @property
    def has_value(self) -> bool:
        """Whether a value was written, null included."""
        return "value" in self.model_fields_set


class AllPart(Part):
    """Conditions that must all hold."""

    id: Identity
    all: list["ConditionPart"]


class AnyPart(Part):
    """Conditions of which one must hold."""

    id: Identity
    any: list["ConditionPart"]


class NonePart(Part):
    """Conditions of which none may hold."""

    id: Identity
    none: list["ConditionPart"]


def _condition_tag(value: Any) -> str:
    names = value if isinstance(value, dict) else type(value).model_fields if isinstance(value, BaseModel) else ()
    return TAG + next((mode for mode in GROUP_MODES if mode in names), "leaf")


ConditionPart = Annotated[
    Annotated[LeafPart, Tag(f"{TAG}leaf")]
    | Annotated[AllPart, Tag(f"{TAG}all")]
    | Annotated[AnyPart, Tag(f"{TAG}any")]
    | Annotated[NonePart, Tag(f"{TAG}none")],
    Discriminator(_condition_tag),
]


class RetryPart(Part):
    """How a failed step is tried again; what isn't written is as the action says."""

    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None = None
    base_delay: str | None = None
    factor: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] | None = None
    max_delay: str | None = None
    jitter: bool | None = None

    @field_validator("base_delay", "max_delay")
    @classmethod
    def _delays(cls, text: str | None) -> str | None:
        return None if text is None else _duration(text, exact=True)


class StepPart(Part):
    """What all steps have."""

    id: Identity
    note: Note = ""
    off: bool = False


class ActionStep(StepPart):
    """A registered action with its parameters."""

    kind: Literal["action"]
    action: str
    version: Annotated[int, Field(ge=1)]
    params: dict[str, Any] = Field(default_factory=dict)
    effect: Literal["idempotent", "at_least_once", "at_most_once", "db_local"] | None = None
    retry: RetryPart | None = None
    timeout: str | None = None
    if_it_fails: Literal["stop", "continue"] = "stop"

    @field_validator("timeout")
    @classmethod
    def _timeout(cls, text: str | None) -> str | None:
        if text is not None and not 1 <= Span.parse(_duration(text, exact=True)).seconds <= LONGEST_TIMEOUT:
            raise ValueError(_("a timeout is from 1 to %(seconds)s seconds") % {"seconds": LONGEST_TIMEOUT})
        return text


class DelayStep(StepPart):
    """Waiting for a duration; a zero one is a delay of zero."""

    kind: Literal["delay"]
    duration: str = Field(alias="for")

    @field_validator("duration")
    @classmethod
    def _for(cls, text: str) -> str:
        return _duration(text)


class ArmPart(Part):
    """One way out of a branch."""

    id: Identity
    condition: ConditionPart = Field(alias="if")
    steps: list["AnyStep"]


class BranchStep(StepPart):
    """Arms tried from the top down, and what happens otherwise."""

    kind: Literal["branch"]
    arms: Annotated[list[ArmPart], Field(min_length=1)]
    otherwise: list["AnyStep"] = Field(default_factory=list)


class StopStep(StepPart):
    """The end of the run, or also of the later rules of the event."""

    kind: Literal["stop"]
    ends: Literal["run", "later_rules"] = "run"


def _step_tag(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"{TAG}{kind}"


AnyStep = Annotated[
    Annotated[ActionStep, Tag(f"{TAG}action")]
    | Annotated[DelayStep, Tag(f"{TAG}delay")]
    | Annotated[BranchStep, Tag(f"{TAG}branch")]
    | Annotated[StopStep, Tag(f"{TAG}stop")],
    Discriminator(_step_tag),
]


class TriggerPart(Part):
    """What the rule listens to; the parameters are checked by the trigger's own schema."""

    kind: str
    params: dict[str, Any] = Field(default_factory=dict)


class LimitPart(Part):
    """At most so many runs for one record in a span."""

    runs: Annotated[int, Field(ge=1, le=MOST_RUNS)]
    per: str

    @field_validator("per")
    @classmethod
    def _per(cls, text: str) -> str:
        if Span.parse(_duration(text)).is_zero:
            raise ValueError(_("the span of a limit is longer than zero"))
        return text


class Definition(Part):
    """A whole rule. "Always" is an explicit `condition: null`."""

    schema_version: Literal[1]
    trigger: TriggerPart
    condition: ConditionPart | None
    steps: list[AnyStep]
    again: Literal["both", "keep", "restart"] | None = None
    limit: LimitPart | None = None
    imports: Literal["run", "skip", "once"] = "run"
    expires: str | None = None
    on_failure: Literal["keep"] = "keep"

    @field_validator("expires")
    @classmethod
    def _expires(cls, text: str | None) -> str | None:
        if text is not None and Span.parse(_duration(text)).is_zero:
            raise ValueError(_("a run that lives for no time at all can do nothing"))
        return text

    def to_json(self) -> dict[str, Any]:
        """The document as it is stored: what was written, with ids; loading and saving it changes nothing."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def parse(data: Any) -> Definition:
    """A definition read from its JSON values; parts without an id get one. The argument isn't changed.

    Raises DefinitionError with everything that is wrong, each at its JSON pointer.
    """
    check_size(data)
    if not isinstance(data, dict):
        raise DefinitionError([Problem("", _("A definition is a JSON object."), "wrong_type")])
    data = json.loads(json.dumps(data))  # a copy in which no two parts are one object
    give_ids(data)
    found = list(parts(data))
    problems = [*not_available(data, found), *over_limits(found), *double_ids(found)]
    try:
        definition = Definition.model_validate(data)
    except ValidationError as error:
        refused = tuple(problem.pointer for problem in problems if problem.code == "not_available")
        problems += [problem for problem in problems_of(error) if not _is_about(problem.pointer, refused)]
    if problems:
        raise DefinitionError(problems)
    return definition


def _is_about(pointer: str, refused: tuple[str, ...]) -> bool:
    return any(pointer == place or pointer.startswith(f"{place}/") for place in refused)
